//go:build unix

package engine

import "syscall"

// O_NOFOLLOW makes the open fail if the file became a symbolic link after it was inspected.
const noFollow = syscall.O_NOFOLLOW
