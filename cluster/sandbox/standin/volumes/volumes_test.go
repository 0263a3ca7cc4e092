package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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
}

func TestTheClassIsNeededForAFolderAlone(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bob", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	volume := func(path string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			StorageClassName:       "nfs",
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: path}},
		}}
	}
	if err := erase(root, volume("/srv/none"), nil); err != nil {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if err := erase(root, volume("/srv/bob/data"), nil); err != nil {
		t.Errorf("a deeper folder is not found: %v", err)
	}
	if err := erase(root, volume("/srv/bob"), nil); err == nil ||
		err.Error() != `storageclasses.storage.k8s.io "nfs" not found` {
		t.Errorf("no class: %v", err)
	}
	if err := erase(root, volume("/srv/bob"), &storagev1.StorageClass{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "archived-bob", "data")); err != nil {
		t.Error(err)
	}
}

func TestFoldersAreNamedAsTheirClassSays(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "bob", Name: "data", Labels: map[string]string{"team": "x"},
		Annotations: map[string]string{"folder": "../../etc"},
	}}
	for pattern, want := range map[string]string{
		"${.PVC.namespace}/${.PVC.name}": "bob/data", "${.PVC.labels.team}-${.PVC.annotations.folder}": "x-../../etc",
		"plain": "plain", "${.PVC.other}": "",
	} {
		if got := fromPattern(pattern, claim); got != want {
			t.Errorf("%s: %s", pattern, got)
		}
	}
}

func TestAPatternThatGivesNothingNamesTheExport(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "bob", Name: "data", UID: "1"}}
	for _, c := range []struct {
		parameters map[string]string
		want       string
	}{
		{nil, "/bob-data-pvc-1"},
		{map[string]string{"pathPattern": "${.PVC.namespace}/${.PVC.name}"}, "/bob/data"},
		{map[string]string{"pathPattern": "${.PVC.labels.team}"}, "/"},
		{map[string]string{"pathPattern": "../out"}, "/out"},
	} {
		if got := folderName(claim, &storagev1.StorageClass{Parameters: c.parameters}); got != c.want {
			t.Errorf("%v: %s, want %s", c.parameters, got, c.want)
		}
	}
}

func TestFeaturesAreBooleans(t *testing.T) {
	for state, want := range map[string]bool{"true": true, "1": true, "false": false, "": false, "yes": false} {
		if enabled(state) != want {
			t.Errorf("%q", state)
		}
	}
}
