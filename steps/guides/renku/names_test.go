package renku

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"carrick/steps"
	"carrick/steps/linkfile"
)

// The longest name that a link may have still gives names that Kubernetes
// takes, and two such links don't share one.
func TestLongLinksGiveNamesThatAreTaken(t *testing.T) {
	long, other := strings.Repeat("a", linkfile.MaxName), strings.Repeat("a", linkfile.MaxName-1)+"b"
	for _, link := range []string{"a", long, other} {
		if bad := validation.IsQualifiedName(restartedFor(link)); len(bad) > 0 {
			t.Errorf("%s: %v", restartedFor(link), bad)
		}
		name := testName(steps.Env{Link: link})
		if bad := validation.IsDNS1123Label(name); len(bad) > 0 || len(name) > 52 {
			t.Errorf("%s: %v", name, bad)
		}
		value, _ := configNameQuestion().Default(steps.Env{Link: link})
		if err := checkConfigName(value.(string)); err != nil {
			t.Error(err)
		}
	}
	longName, _ := configNameQuestion().Default(steps.Env{Link: long})
	otherName, _ := configNameQuestion().Default(steps.Env{Link: other})
	if longName == otherName || restartedFor(long) == restartedFor(other) ||
		testName(steps.Env{Link: long}) == testName(steps.Env{Link: other}) {
		t.Error("two links share a name")
	}
}

func TestConfigNames(t *testing.T) {
	for name, good := range map[string]bool{
		"a.yaml": true, "A_b-c.d.yaml": true, strings.Repeat("a", 35) + ".yaml": true,
		strings.Repeat("a", 36) + ".yaml": false, "a.yml": false, ".yaml": false, "a b.yaml": false, "a/b.yaml": false,
		"..yaml": false, "a.yaml\n": false,
	} {
		if err := checkConfigName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestULIDsTellWhenTheyWereMade(t *testing.T) {
	at, ok := ulidTime("01ARZ3NDEKTSV4RRFFQ69G5FAV") // the example of the ULID specification
	if want := time.UnixMilli(1469922850259); !ok || !at.Equal(want) {
		t.Errorf("got %v %v, want %v", at, ok, want)
	}
	for _, bad := range []string{"", "01ARZ3NDEK", "01ARZ3NDEKTSV4RRFFQ69G5FAVX", "0lARZ3NDEKTSV4RRFFQ69G5FAV"} {
		if _, ok := ulidTime(bad); ok {
			t.Errorf("%q is taken for a ULID", bad)
		}
	}
}

func TestRegistriesOfImages(t *testing.T) {
	for image, want := range map[string]string{
		"nginx": "docker.io", "renku/csi-rclone:0.6.0": "docker.io", "index.docker.io/renku/x": "docker.io",
		"docker.io/library/nginx@sha256:00": "docker.io",
		"harbor.renkulab.io/a/b:1":          "harbor.renkulab.io", "localhost/x": "localhost",
		"registry:5000/x": "registry:5000", "nginx:1.2": "docker.io",
	} {
		if got := registryOf(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

// A value that was saved is never written over.
func TestSavedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "old")
	for range 2 { // the second time there is nothing to do
		if err := saveOnce(file, []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	if err := saveOnce(file, []byte("two")); err == nil {
		t.Error("written over")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
}
