package liqo

import (
	"slices"

	"carrick/steps"
	"carrick/steps/check"
)

func clusters() steps.Step {
	return steps.Step{
		Name: "clusters", Title: "Clusters",
		Why: "The consumer's pods shall run on the provider. Liqo must be installed and healthy on both, in versions that " +
			"understand each other, and each must have an id of its own.",
		Ask: []steps.Question{
			{
				Key: "network.join", Title: "Join the networks, too", Kind: steps.YesNo,
				Adopt: adoptJoin,
				Help: "No: pods are offloaded, but those of the two clusters don't reach each other. Possible only where both " +
					"have Liqo's networking module.",
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

// joinedByDefault returns true unless a side's networking module is off.
func joinedByDefault(e steps.Env) (any, string) {
	for _, side := range []struct {
		name  string
		facts steps.Facts
	}{{e.SideName(), e.Own}, {e.PeerName(), e.Peer}} {
		if on, err := side.facts.Value("networking"); err == nil && on == false {
			return false, "the " + side.name + "'s networking module is off"
		}
	}
	return true, "the published guide"
}
