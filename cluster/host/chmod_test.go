package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func modeAt(t *testing.T, h *Host, name string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(filepath.Join(h.Root, name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// Chmod does not change a folder that another user can replace by a symlink or by a folder of another user. It also
// does not change a folder that has replaced the one that was read.
func TestChmodChangesTheFolderThatIsMeant(t *testing.T) {
	for _, tc := range []struct {
		situation, path, changes string
		refused                  string // what the refusal says; "": it is changed
	}{
		{"root's folder", "/shared/jobs", "shared/jobs", ""},
		{"a user's folder in root's", "/home/alice", "home/alice", ""},
		{"a user's folder in their own", "/home/alice/jobs", "home/alice/jobs", ""},
		{"root's link to root's folder", "/srv/jobs", "shared/jobs", ""},
		{"a user's link", "/home/alice/etc", "etc", "is a symlink in a directory that uid 1000 can write to"},
		{
			"behind a user's link", "/home/alice/etc/conf", "etc/conf", "is a symlink in a directory that uid 1000 can write to",
		},
		{"root's folder in one that all can write to", "/tmp/jobs", "tmp/jobs", "is writable by users other than root"},
		{"a file", "/etc/file", "etc/file", "not a directory"},
	} {
		h := newHostOf(t, map[string]string{
			"shared/jobs/x": "", "srv/jobs@": "/shared/jobs", "home/alice/jobs/x": "", "home/alice/etc@": "/etc",
			"etc/conf/x": "", "etc/file": "", "tmp/jobs/x": "",
		})
		for name, mode := range map[string]fs.FileMode{"tmp": 0o777, tc.changes: 0o755} {
			if err := os.Chmod(filepath.Join(h.Root, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		_, before := h.Folder(tc.path)
		err := h.Chmod(t.Context(), tc.path, "", 0o005, 0)
		if (before == nil) != (err == nil) {
			t.Errorf("%s: Folder says %v, Chmod %v", tc.situation, before, err)
		}
		want := fs.FileMode(0o750)
		if tc.refused != "" {
			want = 0o755
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%s: error %v", tc.situation, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", tc.situation, err)
		}
		if got := modeAt(t, h, tc.changes); got != want {
			t.Errorf("%s: mode %o, want %o", tc.situation, got, want)
		}
	}
}

func TestChmodOfAnotherFolder(t *testing.T) {
	h := newHostOf(t, map[string]string{"home/alice/jobs/x": "", "home/alice/other/x": ""})
	seen, err := h.Folder("/home/alice/jobs")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Chmod(t.Context(), "/home/alice/jobs", seen.ID, 0o005, 0); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(h.Root, "home/alice")
	for _, move := range [][2]string{{"jobs", "old"}, {"other", "jobs"}} {
		if err := os.Rename(filepath.Join(home, move[0]), filepath.Join(home, move[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Chmod(t.Context(), "/home/alice/jobs", seen.ID, 0o005, 0); !errors.Is(err, errOtherFolder) {
		t.Errorf("error %v", err)
	}
}
