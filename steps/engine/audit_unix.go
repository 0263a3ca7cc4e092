//go:build unix

package engine

import "syscall"

// noFollow makes opening fail if the file became a symbolic link after it was inspected.
const noFollow = syscall.O_NOFOLLOW
