package roles

import (
	"fmt"
	"os"

	"carrick/cluster/sandbox/standin/extension"
)

// runCarrick runs carrick as a child process that is killed when the sandbox exits.
func runCarrick() int {
	path, ok := extension.Find()
	if !ok {
		fmt.Fprintln(os.Stderr, "the binary carrick does not exist next to carrick-sandbox")
		return 1
	}
	return Wrap(path)
}
