package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func profile() steps.Step {
	return steps.Step{Name: "profile", Title: "Profile"}
}

// profileRights are what it takes to do this step.
func profileRights(steps.Env) []cluster.Right { return nil }
