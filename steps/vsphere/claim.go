package vsphere

import "carrick/steps"

func claim() steps.Step {
	return steps.Step{Name: "claim", Title: "Claim"}
}
