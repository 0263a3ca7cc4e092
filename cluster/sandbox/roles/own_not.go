//go:build assets

package roles

import (
	"fmt"
	"os"
)

// leftOut are the roles that this build omits.
var leftOut = []string{Etcd, APIServer, Kubectl}

func runEtcd() int      { return absent() }
func runAPIServer() int { return absent() }
func runKubectl() int   { return absent() }

// absent runs if the user's own program has been removed since Check. It returns an exit code.
func absent() int {
	fmt.Fprintln(os.Stderr, Check())
	return 1
}
