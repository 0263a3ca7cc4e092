package stepstest

import (
	"os"
	"strings"
	"sync"
)

// The kernel asks a gate before each change that carrick makes to the files under a directory. A change is a rename or
// a removal. This allows a test to kill carrick between any two changes.

// fileChange is a change to a file that is about to happen.
type fileChange struct {
	call   string // rename or unlink
	folder string // as a path on the machine
	name   string
}

func (c fileChange) String() string {
	return c.call + " " + strings.TrimSuffix(c.folder, "/") + "/" + c.name
}

// tidying reports whether the change removes a temporary file of an earlier run.
func (c fileChange) tidying() bool { return c.call == "unlink" && strings.HasPrefix(c.name, part) }

// part is the prefix of the names of carrick's temporary files.
const part = ".carrick-"

type gate struct {
	root string
	ask  func(fileChange) bool // returns false if carrick was killed

	ours, theirs *os.File // the ends of the socket that passes the kernel's listener
	end          chan struct{}
	ended        sync.WaitGroup
}
