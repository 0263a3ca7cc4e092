package liqo

import (
	"carrick/steps"
	"carrick/steps/action"
)

func network() steps.Step {
	return steps.Step{
		Name: "network", Title: "Network configuration", When: joins,
		Map: steps.MapRow{Local: "Configuration", Remote: "Configuration", Arrow: steps.Both},
		Why: "carrick gives each side the other's address ranges. Each side's Liqo remaps overlapping ranges independently.",
		Actions: onBothSides(
			"configuration", "Create the Configuration with the provider's networks",
			"Create the Configuration with the consumer's networks",
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
