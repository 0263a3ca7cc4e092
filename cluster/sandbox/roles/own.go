//go:build !assets

package roles

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins of kubectl
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
