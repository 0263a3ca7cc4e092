//go:build !assets

package roles

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins of kubectl
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// leftOut lists the programs that this build does not embed.
var leftOut []string

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runAPIServer() int { return cli.Run(apiserver.NewAPIServerCommand()) }

func runKubectl() int {
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

// kubectlExit is the panic with which kubectl leaves RunKubectl.
type kubectlExit struct {
	message string
	code    int
}

// newKubectl guards the package variables that kubectl sets when its commands are created.
var newKubectl sync.Mutex

var panicOnExit = sync.OnceFunc(func() {
	kubectlutil.BehaviorOnFatal(func(message string, code int) { panic(kubectlExit{message, code}) })
})

// RunKubectl runs kubectl in this process and returns its exit code. It is nil if this build does not embed kubectl.
// It must not run kubectl auth can-i or a plugin, which exit the process. Concurrent calls are safe.
var RunKubectl = func(args []string, streams genericiooptions.IOStreams) (code int) {
	defer func() {
		switch exit := recover().(type) {
		case nil:
		case kubectlExit:
			code = exit.code
			if exit.message != "" {
				fmt.Fprintln(streams.ErrOut, strings.TrimSuffix(exit.message, "\n"))
			}
		default:
			panic(exit)
		}
		rest.SetDefaultWarningHandler(rest.NoWarnings{})
	}()
	panicOnExit()
	newKubectl.Lock()
	command := kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{
		Arguments:   append([]string{Kubectl}, args...),
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50),
		IOStreams:   streams,
	})
	newKubectl.Unlock()
	command.SetArgs(args)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SilenceUsage, command.SilenceErrors = true, true
	kubectlutil.CheckErr(command.Execute())
	return 0
}
