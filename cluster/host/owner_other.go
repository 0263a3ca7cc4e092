//go:build !unix

package host

import "io/fs"

func ownerOf(fs.FileInfo) (uid, gid int) { return -1, -1 }

func numberOf(fs.FileInfo) string { return "" }

// mayCreateIn always returns nil. If the process is not permitted to create files, the write returns the error.
func mayCreateIn(string) error { return nil }
