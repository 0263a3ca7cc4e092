package ondemand_test

import (
	"regexp"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/ondemand"
	"carrick/steps/stepstest"
)

func seeded(t *testing.T) *clustertest.Sandbox {
	t.Helper()
	box := clustertest.Start(t)
	box.Reset(t)
	box.Seed(t, "ondemand")
	return box
}

// ofUsers are the namespaces of who logs in to the scenario's portal, and what is in them: the hook makes those, and
// they stay.
var ofUsers = regexp.MustCompile(`[ /](user|ood)-(alice|bob)(/|$)`).MatchString

// From a web node as its package leaves it and a bare cluster to users who log in, and back to nothing, in the ways
// that the answers allow.
func TestCycle(t *testing.T) {
	// nobody logs in as these, so nobody makes their namespaces but carrick
	trial := map[string]any{"trial.user": "carol", "trial.other": "dave", "trial.make": true}
	for name, more := range map[string]map[string]any{
		"as-it-comes": nil,
		"otherwise": {
			"token.kind": "non-expiring", "registry.use": false, "walltime.use": false, "idle.use": false, "policies.level": "baseline",
			"users.namespace-prefix": "ood-", "cluster.id": "other", "clusterfile.all-namespaces": true,
			"trial.user": "carol", "trial.other": "dave", "trial.make": true,
		},
		"renewed by cron": {"token.renewal": "cron", "registry.use": false, "walltime.use": false, "idle.use": false},
		"a trial":         trial,
	} {
		t.Run(name, func(t *testing.T) {
			stepstest.Among(t, name, "otherwise")
			box := seeded(t)
			stepstest.Cycle(t, box, ondemand.Guide(), assets, strings.ReplaceAll(name, " ", "-"), stepstest.Given(t, box, ondemand.Guide(), more), ofUsers)
		})
	}
}
