package commands

import (
	"time"

	"github.com/spf13/pflag"

	"carrick/cluster/kubeconfig"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
)

// accessFlags are kubectl's flags for one side. There is no flag for tokens or passwords, because process lists and
// shell histories would expose them.
type accessFlags struct {
	kubeconfig, context, as string
	groups                  []string
	timeout                 time.Duration
}

func (f *accessFlags) add(to *pflag.FlagSet, prefix, side string) {
	to.StringVar(&f.kubeconfig, prefix+"kubeconfig", "", side+": kubeconfig `file`; default: by kubectl's rules")
	to.StringVar(&f.context, prefix+"context", "", side+": `context` to use instead of the link's")
	to.StringVar(&f.as, prefix+"as", "", side+": `user` to impersonate")
	to.StringSliceVar(&f.groups, prefix+"as-group", nil, side+": `groups` to impersonate")
	to.DurationVar(
		&f.timeout, prefix+"request-timeout", 0, side+": time limit of one request and of one check; default: 10s",
	)
}

func (f *accessFlags) access() kubeconfig.Access {
	return kubeconfig.Access{
		Kubeconfig: f.kubeconfig, Context: f.context, As: f.as, AsGroups: f.groups, Timeout: f.timeout,
	}
}

// sideFlag parses --side. It accepts local, remote and the guide's names for the sides.
func sideFlag(value string, g *steps.Guide) (steps.Side, error) {
	if value == "" {
		return "", nil
	}
	for _, s := range steps.Sides {
		if value == string(s) || value == g.Sides[s].Name || value == g.Sides[s].Flag() {
			return s, nil
		}
	}
	return "", exit.Usagef(
		"--side %q is neither %s nor %s", value, g.Sides[steps.Local].Flag(), g.Sides[steps.Remote].Flag(),
	)
}
