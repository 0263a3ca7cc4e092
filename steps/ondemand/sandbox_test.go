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
var ways = map[string]map[string]any{
	"as-it-comes": nil,
	"otherwise": {
		"token.kind": "non-expiring", "registry.use": false, "walltime.use": false, "idle.use": false, "policies.level": "baseline",
		"users.namespace-prefix": "ood-", "cluster.id": "other", "clusterfile.all-namespaces": true,
		"trial.user": "carol", "trial.other": "dave", "trial.make": true,
	},
	"renewed by cron": {"token.renewal": "cron", "registry.use": false, "walltime.use": false, "idle.use": false},
	// no one logs in as these, so only carrick creates their namespaces
	"a trial": {"trial.user": "carol", "trial.other": "dave", "trial.make": true},
}

// oneWay is the one that make test takes.
var oneWay = []string{"otherwise"}

func TestCycle(t *testing.T) { stepstest.Live(t, "cycle", oneWay, cycle) }

func TestVerifyCycles(t *testing.T) {
	stepstest.Live(t, "cycle", stepstest.Except(ways, oneWay), cycle)
}

func cycle(t *testing.T, _ *clustertest.Sandbox, name string) {
	box := seeded(t)
	given := stepstest.Given(t, box, ondemand.Guide(), ways[name])
	stepstest.Cycle(t, box, ondemand.Guide(), assets, strings.ReplaceAll(name, " ", "-"), given, ofUsers)
}
