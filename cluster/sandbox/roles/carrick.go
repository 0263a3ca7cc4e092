package roles

import (
	"fmt"
	"os"

	"carrick/cluster/sandbox/standin/extension"
)

// runCarrick runs carrick as a part of the sandbox, so that it ends with the sandbox.
func runCarrick() int {
	path, ok := extension.Find()
	if !ok {
		fmt.Fprintln(os.Stderr, "there is no program carrick beside the sandbox's")
		return 1
	}
	return Wrap(path)
}
