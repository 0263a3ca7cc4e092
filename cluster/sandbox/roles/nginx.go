package roles

import (
	"fmt"
	"os"

	"carrick/cluster/sandbox/standin/endpoint"
)

// runNginx runs this machine's nginx as a child process that is killed when the sandbox exits.
func runNginx() int {
	path, ok := endpoint.FindNginx()
	if !ok {
		fmt.Fprintln(os.Stderr, "nginx is not installed on this machine")
		return 1
	}
	return Wrap(path)
}
