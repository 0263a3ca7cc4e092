//go:build unix

package host

import (
	"fmt"
	"io/fs"
	"syscall"
)

func ownerOf(info fs.FileInfo) (uid, gid int) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid), int(stat.Gid)
	}
	return -1, -1
}

// numberOf returns the inode number of a file. It omits the device number, because a network share gets another one
// with each mount.
func numberOf(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Ino)
	}
	return ""
}

// mayCreateIn returns an error if this process is not permitted to create files in a directory.
func mayCreateIn(folder string) error {
	const write, enter = 2, 1 // W_OK, X_OK
	return syscall.Access(folder, write|enter)
}
