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

// numberOf is the number of a file on its file system. That of the file system is none to go by: a share has another
// one each time that it is mounted.
func numberOf(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Ino)
	}
	return ""
}

// fillable says why this process may not put files into a folder.
func fillable(folder string) error {
	const write, enter = 2, 1 // W_OK, X_OK
	return syscall.Access(folder, write|enter)
}
