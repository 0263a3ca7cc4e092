package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func security() steps.Step {
	return steps.Step{Name: "security", Title: "Pod security"}
}

// securityRights are what it takes to do this step.
func securityRights(steps.Env) []cluster.Right { return nil }
