package liqo

import (
	"carrick/steps"
	"carrick/steps/action"
)

func network() steps.Step {
	return steps.Step{
		Name: "network", Title: "Network configuration", When: joins,
		Why: "Each side is told the other's address ranges. Where they overlap with its own, Liqo sees them under others, " +
			"each side for itself.",
		Actions: twice(
			"configuration", "Tell the consumer the provider's networks", "Tell the provider the consumer's networks",
			steps.Action{
				Needs: []string{"tenant-namespace", "networks-known", "peer/networks-known"},
				Doer: vanishing{action.Manifest{File: "configuration.yaml", Values: action.Values{
					"tenant-namespace": tenantSpace,
					"name":             namedAfterPeer(configurations),
				}}, ownedNetworks, []childKind{{networks, "Network"}}},
			},
		),
		Checks: networkChecks(),
	}
}
