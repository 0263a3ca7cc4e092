//go:build unix

package host

import (
	"os"
	"syscall"
)

// hold locks a new file until it is closed or the process ends. It returns false if another process has already removed
// the file.
func hold(file *os.File) bool {
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return true // without locks in the file system, no process removes the file
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 0
}

// lockedByOther reports whether another process has locked a file. If none has, it locks the file.
func lockedByOther(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
