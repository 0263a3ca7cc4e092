//go:build unix

package host

import (
	"os"
	"syscall"
)

// hold locks a new file until it is closed or the process ends, even by a crash. It returns false if the file has been
// removed already.
func hold(file *os.File) bool {
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return true // the file system has no locks: then no process can tidy it either
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 0
}

// inHand reports whether another process has locked a file. If not, it locks the file for this process.
func inHand(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
