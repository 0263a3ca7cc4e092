package leash

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPrepareRefusesAFolderThatIsNotEmpty(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := prepare(dir); err == nil {
		t.Error("taken")
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestRemoveOfWhatIsNotThere(t *testing.T) {
	if err := remove(filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Error(err)
	}
}
