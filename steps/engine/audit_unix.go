//go:build unix

package engine

import "syscall"

// noFollow has a file that became a symbolic link after it was inspected refused.
const noFollow = syscall.O_NOFOLLOW
