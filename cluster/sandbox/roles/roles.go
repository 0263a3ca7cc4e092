// Package roles contains the programs that are embedded in this binary. The binary runs as the program whose name it
// was started under.
//
// The main function of each program is a verbatim copy of upstream's. Package plane sets the flags and decides when to
// start a program. The build tag assets omits etcd, kube-apiserver and kubectl, for users who already have them.
package roles

import (
	"path/filepath"
	_ "time/tzdata" // for CronJobs with time zones

	"github.com/spf13/pflag"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"
)

// Names of the programs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	Nginx             = "nginx"   // nginx of this machine
	Carrick           = "carrick" // carrick in pods of its extension
)

// Role is an embedded program. Main returns the exit code or exits the process.
type Role struct {
	Name string
	Main func() int
	// Leashed programs are killed when the sandbox ends.
	Leashed bool
}

// All returns every role.
func All() []Role {
	return []Role{
		{Etcd, runEtcd, true},
		{APIServer, runAPIServer, true},
		{ControllerManager, func() int { return cli.Run(controllers.NewControllerManagerCommand()) }, true},
		{Scheduler, func() int { return cli.Run(scheduler.NewSchedulerCommand()) }, true},
		{Kubectl, runKubectl, false},
		{Kwok, runKwok, true},
		{Nginx, runNginx, true},
		{Carrick, runCarrick, true},
	}
}

// Find returns the role for the base name of arg0, or false if there is none.
func Find(arg0 string) (Role, bool) {
	for _, r := range All() {
		if r.Name == filepath.Base(arg0) {
			return r, true
		}
	}
	return Role{}, false
}

func runKwok() int {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		logger.Error("Init config flags", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.Version = "" // its --version would conflict with the common --version flag of Kubernetes components
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Execute exit", "err", err)
		return 1
	}
	return 0
}
