package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func function() steps.Step {
	return steps.Step{Name: "function", Title: "Function"}
}

// functionRights are what it takes to do this step.
func functionRights(steps.Env) []cluster.Right { return nil }
