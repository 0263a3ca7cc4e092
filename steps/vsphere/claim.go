package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func claim() steps.Step {
	return steps.Step{Name: "claim", Title: "Claim"}
}

func claimRights(steps.Env) []cluster.Right { return nil }
