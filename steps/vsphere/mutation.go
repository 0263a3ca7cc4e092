package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func mutation() steps.Step {
	return steps.Step{Name: "mutation", Title: "Mutation"}
}

// mutationRights are what it takes to do this step.
func mutationRights(steps.Env) []cluster.Right { return nil }
