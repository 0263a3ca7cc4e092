package check

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster"
	"carrick/steps"
)

func TestWhatOnlyRootMayWrite(t *testing.T) {
	for _, tc := range []struct {
		situation string
		mode      os.FileMode
		folder    os.FileMode
		owners    map[string]int
		isFolder  bool
		want      steps.Status
		found     string
	}{
		{"as it should be", 0o600, 0o755, nil, false, steps.Pass, "belong to root"},
		{"others may write it", 0o666, 0o755, nil, false, steps.Fail, "/etc/x has mode 0666"},
		{"others may replace it", 0o600, 0o775, nil, false, steps.Fail, "/etc has mode 0775"},
		{"somebody else's", 0o600, 0o755, map[string]int{"/etc/x": 1000}, false, steps.Fail, "uid 1000"},
		{"in somebody else's folder", 0o600, 0o755, map[string]int{"/etc": 1000}, false, steps.Fail, "/etc belongs to uid 1000"},
		{"a folder that stands for a machine", 0o600, 0o755, map[string]int{"/etc": 1000}, true, steps.Skip, "ls -l /etc/x"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			root := t.TempDir()
			if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "etc/x"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for path, mode := range map[string]os.FileMode{"etc": tc.folder, "etc/x": tc.mode} {
				if err := os.Chmod(filepath.Join(root, path), mode); err != nil {
					t.Fatal(err)
				}
			}
			o := cluster.HostOptions{Owner: func(path string) (int, int, bool) { return tc.owners[path], 0, true }}
			if !tc.isFolder {
				o.Run = func(context.Context, string, ...string) (string, string, error) { return "", "", nil }
			}
			h, err := cluster.NewHostWith(root, o)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			r := OwnedByRoot(t.Context(), h, "/etc/x", "make it")
			if r.Status != tc.want || !strings.Contains(r.Found, tc.found) {
				t.Errorf("%v: %s", r.Status, r.Found)
			}
			if r := OwnedByRoot(t.Context(), h, "/etc/none", "make it"); r.Status != steps.Fail || r.Fix != "make it" {
				t.Errorf("not there: %v: %s", r.Status, r.Found)
			}
			wide := tc.mode&^0o600 != 0
			if r := FileMode(t.Context(), h, "/etc/x", 0o600, ""); (r.Status == steps.Fail) != wide || (wide && r.Fix != "chmod 0600 /etc/x") {
				t.Errorf("mode %o: %v: %s (%s)", tc.mode, r.Status, r.Found, r.Fix)
			}
		})
	}
}
