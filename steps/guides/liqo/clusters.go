package liqo

import (
	"slices"

	"carrick/steps"
	"carrick/steps/check"
)

func clusters() steps.Step {
	return steps.Step{
		Name: "clusters", Title: "Clusters",
		Map: steps.MapRow{Local: "API, Liqo", Remote: "API, Liqo"},
		Why: "Both clusters need a healthy Liqo installation, compatible Liqo versions and distinct cluster ids.",
		Ask: []steps.Question{
			{
				Key: "network.enabled", Title: "Network connection", Kind: steps.YesNo,
				Adopt: adoptJoin,
				Help: "Yes connects the pod networks and requires Liqo's networking module on both sides. No offloads pods " +
					"without connecting the networks.",
				Default: joinedByDefault,
			},
			liqoSpaceQuestion(consumer, steps.Local),
			liqoSpaceQuestion(provider, steps.Remote),
		},
		Facts: slices.Concat(check.Identity(), clusterIDFacts(), adoptFacts()),
		Checks: slices.Concat([]steps.Check{
			check.Reachable(),
			check.SignedIn(),
			check.Clock(),
			check.NotTheSame(),
		}, liqoChecks()),
	}
}

// joinedByDefault returns true unless a side's networking module is disabled.
func joinedByDefault(e steps.Env) (any, string) {
	for _, side := range []struct {
		name  string
		facts steps.Facts
	}{{e.SideName(), e.Own}, {e.PeerName(), e.Peer}} {
		if on, err := side.facts.Value("networking"); err == nil && on == false {
			return false, "the " + side.name + "'s disabled networking module"
		}
	}
	return true, "from the published guide"
}
