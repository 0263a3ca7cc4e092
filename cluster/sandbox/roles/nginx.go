package roles

import (
	"fmt"
	"os"

	"carrick/cluster/sandbox/standin/endpoint"
)

// runNginx runs this machine's nginx as a part of the sandbox, so that it ends with the sandbox.
func runNginx() int {
	path, ok := endpoint.FindNginx()
	if !ok {
		fmt.Fprintln(os.Stderr, "there is no nginx on this machine")
		return 1
	}
	return Wrap(path)
}
