package host

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"carrick/cluster/masked"
)

// A user repeatedly replaces their folder by a symlink to another folder while root writes into it. No file of root
// ends up in the other folder.
func TestASwappedFolderRedirectsNothing(t *testing.T) {
	h := newHostOf(
		t, map[string]string{"home/alice/conf/file": "x", "home/alice/link@": "../../etc", "etc/file": "root's"},
	)
	at := func(name string) string { return filepath.Join(h.Root, name) }
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		for ctx.Err() == nil {
			if err := unix.Renameat2(
				unix.AT_FDCWD, at("home/alice/conf"), unix.AT_FDCWD, at("home/alice/link"), unix.RENAME_EXCHANGE,
			); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	written, refused := 0, 0
	for i := 0; i < 20000 && (i < 500 || written == 0 || refused == 0); i++ {
		if err := h.Write(t.Context(), "/home/alice/conf/file", masked.New(string(rune('a'+i%2))), 0o600); err == nil {
			written++
		} else {
			refused++
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Skipf("this file system cannot exchange two names: %v", err)
	}
	if written == 0 || refused == 0 {
		t.Errorf("%d written, %d refused: this proves nothing", written, refused)
	}
	if text, err := os.ReadFile(at("etc/file")); err != nil || string(text) != "root's" {
		t.Errorf("root's file: %q, %v", text, err)
	}
}
