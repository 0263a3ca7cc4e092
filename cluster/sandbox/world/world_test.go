package world

import (
	"io/fs"
	"path"
	"slices"
	"testing"
)

func TestEveryFileIsASidesAndHasObjects(t *testing.T) {
	seen := 0
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		seen++
		if side := path.Base(path.Dir(name)); !slices.Contains([]string{"both", "local", "remote"}, side) {
			t.Errorf("%s belongs to no side", name)
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		objects, err := Parse(data)
		if err != nil || len(objects) == 0 {
			t.Errorf("%s: %d objects, %v", name, len(objects), err)
		}
		for _, object := range objects {
			if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
				t.Errorf("%s: an object without kind, version or name", name)
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Errorf("%d files, %v", seen, err)
	}
	if !slices.Contains(Scenarios(), "renku") {
		t.Errorf("scenarios: %v", Scenarios())
	}
}
