package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/masked"
)

// newHostOf is like newHost, with owners: uid 1000 owns all paths that begin with /home/alice.
func newHostOf(t *testing.T, files map[string]string) *Host {
	t.Helper()
	h := newHost(t, files)
	h.options.Owner = func(path string) (int, int, bool) { return 1000, 1000, strings.HasPrefix(path, "/home/alice") }
	return h
}

func TestWhereOthersCanWrite(t *testing.T) {
	for _, tc := range []struct {
		situation, path string
		refused         string // the component; "": it is written
		says            string
	}{
		{"a new file in a user's folder", "/home/alice/hook", "/home/alice", "is owned by uid 1000"},
		{"a new folder there", "/home/alice/new/hook", "/home/alice", "chown root /home/alice"},
		{"a new file below", "/home/alice/conf/hook", "/home/alice", "is owned by uid 1000"},
		{
			"a symlink of a user's", "/home/alice/etc/hook", "/home/alice/etc",
			"is a symlink in a directory that uid 1000 can write to",
		},
		{"root's symlink to a user's folder", "/srv/alice/hook", "/home/alice", "is owned by uid 1000"},
		{"a folder that all can write to", "/shared/hook", "/shared", "chmod go-w /shared"},
		{"a folder below it", "/shared/conf/hook", "/shared", "chmod go-w /shared"},
		{"a file that exists there", "/shared/file", "/shared", "chmod go-w /shared"},
		{"a user's own file", "/home/alice/conf/file", "", ""},
		{"root's folder", "/etc/hook", "", ""},
		{"root's symlink to root's folder", "/srv/etc/hook", "", ""},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			h := newHostOf(t, map[string]string{
				"home/alice/conf/file": "x", "home/alice/etc@": "/etc", "etc/x": "", "srv/alice@": "/home/alice",
				"srv/etc@": "../etc", "shared/conf/x": "", "shared/file": "x",
			})
			if err := os.Chmod(filepath.Join(h.Root, "shared"), 0o777); err != nil {
				t.Fatal(err)
			}
			before := h.MayWrite(tc.path)
			err := h.Write(t.Context(), tc.path, masked.New("new"), 0o600)
			if (before == nil) != (err == nil) {
				t.Errorf("MayWrite says %v, Write %v", before, err)
			}
			if tc.refused == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var refused *FolderError
			if !errors.As(err, &refused) || refused.Path != tc.refused || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v", err)
			}
			if _, err := os.Lstat(filepath.Join(h.Root, "home/alice/new")); err == nil {
				t.Error("a folder was made")
			}
		})
	}
}

func TestWhereRootAlonePutsAFile(t *testing.T) {
	h := newHostOf(t, map[string]string{
		"usr/bin/x": "", "shared/x": "", "home/alice/x": "", "home/alice/link@": "/usr/bin/x", "srv/x@": "../usr/bin/x",
		"srv/alice@": "/home/alice/x", "srv/bin@": "/usr/bin", "srv/home@": "/home/alice", "srv/loop@": "loop",
	})
	if err := os.Chmod(filepath.Join(h.Root, "shared"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ path, leads, refused string }{
		{"/usr/bin/x", "/usr/bin/x", ""},
		{"/usr/bin/missing", "/usr/bin/missing", ""},
		{"/srv/x", "/usr/bin/x", ""},
		{"/srv/bin/x", "/usr/bin/x", ""},
		{"/shared/x", "", "/shared"},
		{"/home/alice/x", "", "/home/alice"},
		{"/home/alice/link", "", "/home/alice"},
		{"/srv/alice", "", "/home/alice"},
		{"/srv/home/x", "", "/home/alice"},
	} {
		leads, err := h.RootsAlone(tc.path)
		refused := &FolderError{}
		if errors.As(err, &refused) != (tc.refused != "") || refused.Path != tc.refused || leads != tc.leads {
			t.Errorf("%s: leads to %q, %v", tc.path, leads, err)
		}
	}
	if _, err := h.RootsAlone("/srv/loop"); err == nil || !strings.Contains(err.Error(), "40 symlinks") {
		t.Errorf("a loop: %v", err)
	}
}
