//go:build assets

package roles

import (
	"fmt"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// leftOut lists the programs that this build does not embed.
var leftOut = []string{Etcd, APIServer, Kubectl}

// RunKubectl is nil, because this build does not embed kubectl.
var RunKubectl func(args []string, streams genericiooptions.IOStreams) (code int)

func runEtcd() int      { return absent() }
func runAPIServer() int { return absent() }
func runKubectl() int   { return absent() }

// absent is the main function of a program that this build does not embed. It runs only if the user removed the
// program after Check.
func absent() int {
	fmt.Fprintln(os.Stderr, Check())
	return 1
}
