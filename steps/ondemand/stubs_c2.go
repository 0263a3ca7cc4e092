package ondemand

import (
	"errors"

	"carrick/cluster"
	"carrick/steps"
)

// Stand-ins of what other files bring: this file goes when they are there.

func inFolder(err error, command string) (steps.Result, bool) {
	if errors.Is(err, cluster.ErrFolder) {
		return steps.Skipped("a folder stands for the web node: that can't be run here; run there: %s", command), true
	}
	return steps.Result{}, false
}

func onWebNode(command string) string { return "run on the web node: " + command }

// stubQuestions are asked by other steps.
func stubQuestions() []steps.Question {
	return []steps.Question{
		{Key: "kubectl.path", Title: "kubectl on the web node", Help: "Asked elsewhere.", Kind: steps.Path, Default: steps.Fixed("/usr/local/bin/kubectl", "where the published page puts it")},
		{Key: "walltime.use", Title: "The reaper of pods is used", Help: "Asked elsewhere.", Kind: steps.YesNo, Default: steps.Fixed(false, "asked elsewhere")},
		{Key: "registry.use", Title: "A registry asks for a login", Help: "Asked elsewhere.", Kind: steps.YesNo, Default: steps.Fixed(false, "asked elsewhere")},
		{Key: "registry.secret", Title: "Name of the pull Secret", Help: "Asked elsewhere.", Kind: steps.Name, Opt: true},
		{Key: "policies.level", Title: "Level of pod security", Help: "Asked elsewhere.", Kind: steps.Text, Default: steps.Fixed("restricted", "asked elsewhere")},
	}
}

// stubFacts are learnt by other steps.
func stubFacts() []steps.Fact { return nil }
