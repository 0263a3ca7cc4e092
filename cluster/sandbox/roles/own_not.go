//go:build assets

package roles

import (
	"fmt"
	"os"
)

// leftOut lists the programs that this build does not embed.
var leftOut = []string{Etcd, APIServer, Kubectl}

func runEtcd() int      { return absent() }
func runAPIServer() int { return absent() }
func runKubectl() int   { return absent() }

// absent is the main function of a program that this build does not embed. It runs only if the user removed the
// program after Check.
func absent() int {
	fmt.Fprintln(os.Stderr, Check())
	return 1
}
