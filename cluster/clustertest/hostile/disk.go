package hostile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk mounts a file system with almost no free space. It requires root, and skips the test otherwise.
func Disk(tb testing.TB) (dir string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("a small disk can be had by root alone")
	}
	dir = tb.TempDir()
	if out, err := exec.Command(
		"mount", "-t", "tmpfs", "-o", "size=256k", "carrick-proof", dir,
	).CombinedOutput(); err != nil {
		tb.Skipf("a small disk can't be had here: %v %s", err, out)
	}
	tb.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			tb.Errorf("umount: %v %s", err, out)
		}
	})
	return dir
}

// Fill uses up all space on a disk.
func Fill(tb testing.TB, dir string) {
	tb.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 512); ; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			tb.Fatal(err)
		}
	}
}

// Files returns the names of the files on a disk, except the filler.
func Files(tb testing.TB, dir string) []string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Name() != "filler" {
			out = append(out, e.Name())
		}
	}
	return out
}
