//go:build unix

package host

import (
	"os"
	"syscall"
)

// hold makes a new file this process's until it is closed, or the process ends, however; false: it is gone already.
func hold(file *os.File) bool {
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return true // this file system knows no locks: then nobody can tidy, either
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 0
}

// inHand tells whether a process holds a file; else it is held now.
func inHand(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
