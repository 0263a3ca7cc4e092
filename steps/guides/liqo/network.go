package liqo

import (
	"carrick/steps"
	"carrick/steps/action"
)

func network() steps.Step {
	return steps.Step{
		Name: "network", Title: "Network configuration", When: joins,
		Why: "carrick gives each side the other's address ranges. Liqo remaps ranges that overlap, on each side " +
			"independently.",
		Actions: twice(
			"configuration", "Give the consumer the provider's networks", "Give the provider the consumer's networks",
			steps.Action{
				Needs: []string{"tenant-namespace", "address-ranges", "peer/address-ranges"},
				Doer: vanishing{action.Manifest{File: "configuration.yaml", Values: action.Values{
					"tenant-namespace": tenantSpace,
					"name":             namedAfterPeer(configurations),
				}}, ownedNetworks, []childKind{{networks, "Network"}}},
			},
		),
		Checks: networkChecks(),
	}
}
