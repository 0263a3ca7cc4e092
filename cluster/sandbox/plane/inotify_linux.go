package plane

import (
	"bytes"
	"io"
	"os"
	"syscall"
)

// LackingWatches returns an error unless n more inotify instances are available.
func LackingWatches(n int) error {
	limit, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return nil // the kernel has no inotify
	}
	return lacking(n, string(bytes.TrimSpace(limit)), func() (io.Closer, error) {
		fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
		return os.NewFile(uintptr(fd), "inotify"), err
	})
}
