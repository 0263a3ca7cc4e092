package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// copyTree copies a folder, and changes the text of each file.
func copyTree(t *testing.T, from, to string, change func(string) string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(at, []byte(change(string(data))), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
