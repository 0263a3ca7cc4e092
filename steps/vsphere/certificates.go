package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func certificates() steps.Step {
	return steps.Step{Name: "certificates", Title: "Certificates"}
}

// certificateRights are what it takes to do this step.
func certificateRights(steps.Env) []cluster.Right { return nil }
