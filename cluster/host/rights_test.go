package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/tracked"
)

func TestAFolderWithCommandsAndOwners(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := NewWith(root, Options{
		Run: func(_ context.Context, name string, args ...string) (string, string, error) {
			return name + " ran\x1b[2J", "", nil
		},
		Owner: func(path string) (int, int, bool) { return 1000, 100, path == "/a" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.IsFolder() || !h.ByRoot() {
		t.Errorf("folder %v, by root %v", h.IsFolder(), h.ByRoot())
	}
	if out, _, err := h.Run(t.Context(), "kubectl"); err != nil || out != clean.Text("kubectl ran\x1b[2J") {
		t.Errorf("%q, %v", out, err)
	}
	if info, err := h.Stat(t.Context(), "/a"); err != nil || info.UID != 1000 || info.GID != 100 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestMayWrite(t *testing.T) {
	h := newHost(t, map[string]string{"etc/a": "x", "etc/link@": "a"})
	for path, want := range map[string]error{
		"/etc/a": nil, "/etc/new": nil, "/opt/x/y/new": nil, "/etc/link": errSymlink, "/etc": errNotRegular,
		"a": errNotAbsolute,
	} {
		if err := h.MayWrite(path); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := h.MayWrite("/etc/a/b"); err == nil {
		t.Error("a file is taken for a folder")
	}
	h.options.ByRoot = func() bool { return false }
	if err := h.MayWrite("/etc/a"); !errors.Is(err, ErrNotRoot) {
		t.Errorf("not root: %v", err)
	}
	if os.Geteuid() == 0 {
		return // root may write anywhere
	}
	if err := os.Chmod(filepath.Join(h.Root, "etc"), 0o555); err != nil {
		t.Fatal(err)
	}
	h.options.ByRoot = nil
	if err := h.MayWrite("/etc/new"); err == nil {
		t.Error("a folder that may not be written is taken for one that may")
	}
}

func TestRemoveFolder(t *testing.T) {
	h := newHost(t, map[string]string{"etc/a": "x", "opt/empty/file": ""})
	if err := os.Remove(filepath.Join(h.Root, "opt/empty/file")); err != nil {
		t.Fatal(err)
	}
	for path, goes := range map[string]bool{"/etc": false, "/opt/empty": true, "/none": true} {
		if err := h.RemoveFolder(t.Context(), path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := h.Stat(t.Context(), path); (err != nil) != goes {
			t.Errorf("%s: then %v", path, err)
		}
	}
	if err := h.RemoveFolder(t.Context(), "/etc/a"); err == nil {
		t.Error("a file is taken for a folder")
	}
}

func TestHostList(t *testing.T) {
	h := newHost(t, map[string]string{"etc/b": "", "etc/a": "", "conf@": "/etc"})
	for _, path := range []string{"/etc", "/conf", "/etc/"} {
		if names, err := h.List(t.Context(), path); err != nil || !slices.Equal(names, []string{"a", "b"}) {
			t.Errorf("%s: %v, %v", path, names, err)
		}
	}
	for _, path := range []string{"/none", "/etc/a"} {
		if names, err := h.List(t.Context(), path); err == nil {
			t.Errorf("%s: %v", path, names)
		}
	}
	for _, tc := range []struct {
		situation string
		change    func() error
	}{
		{"a file appears", func() error { return os.WriteFile(filepath.Join(h.Root, "etc/c"), nil, 0o600) }},
		{"a file goes", func() error { return os.Remove(filepath.Join(h.Root, "etc/a")) }},
		{"the folder goes", func() error { return os.RemoveAll(filepath.Join(h.Root, "etc")) }},
		{"it comes back", func() error { return os.Mkdir(filepath.Join(h.Root, "etc"), 0o755) }},
	} {
		ctx, trace := tracked.WithTrace(t.Context())
		_, _ = h.List(ctx, "/etc")
		if err := tc.change(); err != nil {
			t.Fatal(tc.situation, err)
		}
		wait, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := trace.Wait(wait); err != nil {
			t.Errorf("%s: the trace did not wake", tc.situation)
		}
		cancel()
	}
}
