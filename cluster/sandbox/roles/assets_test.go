package roles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folderOf creates a folder with an empty executable file for each name.
func folderOf(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestAssetsOfTheEnvironmentComeBeforeThoseOfTheBuild(t *testing.T) {
	theirs, built := folderOf(t, Etcd), folderOf(t, Etcd, Kubectl)
	t.Setenv(AssetsVariable, theirs)
	if _, ok := Asset(Kubectl); ok {
		t.Error("a build with all roles looks into another folder")
	}
	builtFor = built
	t.Cleanup(func() { builtFor = "" })
	for name, want := range map[string]string{Etcd: theirs, Kubectl: built} {
		if path, ok := Asset(name); !ok || path != filepath.Join(want, name) {
			t.Errorf("%s: %s, %v", name, path, ok)
		}
	}
	if path, ok := Asset(APIServer); ok {
		t.Errorf("found %s", path)
	}
}

func TestRoleThatIsLeftOutHasToBeFound(t *testing.T) {
	all, less := leftOut, folderOf(t, Etcd, APIServer)
	t.Cleanup(func() { leftOut, builtFor = all, "" })
	leftOut = []string{Etcd, APIServer, Kubectl}
	t.Setenv(AssetsVariable, "")
	builtFor = folderOf(t, Etcd, APIServer, Kubectl)
	if err := Check(); err != nil {
		t.Error(err)
	}
	builtFor = less
	want := "find kubectl: the binary is not in " + less + ", and this carrick-sandbox does not include it; run make sandbox"
	if err := Check(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	other := folderOf(t)
	t.Setenv(AssetsVariable, other)
	if err := Check(); err == nil || !strings.Contains(err.Error(), "not in "+other+" nor in "+less) {
		t.Errorf("%v", err)
	}
}
