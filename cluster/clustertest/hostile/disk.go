package hostile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk mounts a file system with almost no free space and returns its path. It skips the test if the process does not
// run as root.
func Disk(tb testing.TB) (dir string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("mounting a small disk requires root")
	}
	dir = tb.TempDir()
	if out, err := exec.Command(
		"mount", "-t", "tmpfs", "-o", "size=256k", "carrick-proof", dir,
	).CombinedOutput(); err != nil {
		tb.Skipf("cannot mount a small disk: %v %s", err, out)
	}
	tb.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			tb.Errorf("umount: %v %s", err, out)
		}
	})
	return dir
}

// Fill uses up all space on the disk that is mounted at dir.
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

// Files returns the names of the files in dir, except the file from Fill.
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
