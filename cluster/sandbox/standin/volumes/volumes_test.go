package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatBecomesOfAFolder(t *testing.T) {
	for _, c := range []struct {
		situation      string
		parameters     map[string]string
		stays, archive bool
		fails          bool
	}{
		{"nothing is said", nil, false, true, false},
		{"it is archived", map[string]string{"archiveOnDelete": "true"}, false, true, false},
		{"it is not", map[string]string{"archiveOnDelete": "false"}, false, false, false},
		{"what is no answer", map[string]string{"archiveOnDelete": "no way"}, true, false, true},
		{"it is kept", map[string]string{"onDelete": "retain", "archiveOnDelete": "false"}, true, false, false},
		{"it is erased", map[string]string{"onDelete": "delete", "archiveOnDelete": "true"}, false, false, false},
	} {
		dir := t.TempDir()
		folder, archive := filepath.Join(dir, "v"), filepath.Join(dir, "archived-v")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := tidy(folder, archive, c.parameters); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.situation, err)
		}
		for name, want := range map[string]bool{folder: c.stays, archive: c.archive} {
			if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) == want {
				t.Errorf("%s: %s is there: %v", c.situation, filepath.Base(name), !want)
			}
		}
	}
	if err := tidy(filepath.Join(t.TempDir(), "gone"), "x", nil); err != nil {
		t.Errorf("a folder that is gone: %v", err)
	}
}

func TestFoldersAreNamedAsTheirClassSays(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "bob", Name: "data", Labels: map[string]string{"team": "x"}, Annotations: map[string]string{"folder": "../../etc"},
	}}
	for pattern, want := range map[string]string{
		"${.PVC.namespace}/${.PVC.name}": "bob/data", "${.PVC.labels.team}-${.PVC.annotations.folder}": "x-../../etc", "plain": "plain", "${.PVC.other}": "",
	} {
		if got := fromPattern(pattern, claim); got != want {
			t.Errorf("%s: %s", pattern, got)
		}
	}
}
