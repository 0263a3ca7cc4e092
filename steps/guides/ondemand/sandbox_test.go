package ondemand_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

func seeded(t *testing.T) *clustertest.Sandbox {
	t.Helper()
	box := clustertest.Start(t)
	box.Reset(t)
	box.Seed(t, "ondemand")
	return box
}

// ofUsers matches the namespaces of the users who log in to the scenario's portal, and the objects in these namespaces.
// The hook creates them, so an undo keeps them.
var ofUsers = regexp.MustCompile(`[ /](user|ood)-(alice|bob)(/|$)`).MatchString

// ways lists sets of answers, by name. A cycle with each set starts with a newly installed web node and an empty
// cluster, goes on until users can log in, and then undoes everything.
var ways = map[string]map[string]any{
	"as-it-comes": nil,
	"otherwise": {
		"token.kind": "non-expiring", "registry.enabled": false, "walltime.enabled": false, "idle.enabled": false,
		"policies.level":         "baseline",
		"users.namespace-prefix": "ood-", "cluster.id": "other", "clusterfile.all-namespaces": true,
		"trial.user": "carol", "trial.other": "dave", "trial.enabled": true,
	},
	"renewed by cron": {
		"token.renewal": "cron", "registry.enabled": false, "walltime.enabled": false, "idle.enabled": false,
	},
	// carol and dave never log in, so only carrick creates their namespaces
	"a trial": {"trial.user": "carol", "trial.other": "dave", "trial.enabled": true},
}

// others lists the actions that the cycle of make test does not undo. Those of otherWays in make verify do.
var (
	others    = []string{"token-secret", "renew-cron"}
	otherWays = []string{"otherwise", "renewed by cron"}
)

// notInCycles lists actions that need a real machine, and id-policies, which TestVerifyThePoliciesPinIDs undoes.
var notInCycles = []string{"restart-apache2", "selinux-boolean", "id-policies"}

func TestCycle(t *testing.T) {
	stepstest.FirstCycle(t, ondemand.Guide(), "a trial", slices.Concat(notInCycles, others), cycle)
}

func TestVerifyOtherCycles(t *testing.T) {
	stepstest.OtherCycles(t, otherWays, others, cycle)
}

func TestVerifyCycles(t *testing.T) {
	stepstest.Live(t, "cycle", stepstest.Except(ways, append([]string{"a trial"}, otherWays...)),
		func(t *testing.T, _ *clustertest.Sandbox, name string) { cycle(t, name) })
}

func cycle(t *testing.T, name string) []string {
	box := seeded(t)
	given := stepstest.Given(t, box, ondemand.Guide(), ways[name])
	return stepstest.Cycle(t, box, ondemand.Guide(), assets, strings.ReplaceAll(name, " ", "-"), given, ofUsers)
}
