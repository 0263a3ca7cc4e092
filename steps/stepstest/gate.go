package stepstest

import (
	"os"
	"strings"
	"sync"
)

// A gate is asked before each change that a program makes to the files under a folder, by the kernel: a rename or
// a removal. So the program can be killed between any two of them.

// fileChange is one such change, which is about to be made.
type fileChange struct {
	call   string // rename or unlink
	folder string // as the machine knows it
	name   string
}

func (c fileChange) String() string {
	return c.call + " " + strings.TrimSuffix(c.folder, "/") + "/" + c.name
}

// tidying tells whether it takes away what an earlier run has left half-written.
func (c fileChange) tidying() bool { return c.call == "unlink" && strings.HasPrefix(c.name, part) }

// part begins the name of a file that is being written.
const part = ".carrick-"

// gate counts the changes of one run.
type gate struct {
	root string
	ask  func(fileChange) bool // false: the program was killed

	ours, theirs *os.File // the ends of the socket by which the kernel's listener comes
	end          chan struct{}
	ended        sync.WaitGroup
}
