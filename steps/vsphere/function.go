package vsphere

import "carrick/steps"

func function() steps.Step {
	return steps.Step{Name: "function", Title: "Function"}
}
