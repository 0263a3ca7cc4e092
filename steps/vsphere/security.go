package vsphere

import "carrick/steps"

func security() steps.Step {
	return steps.Step{Name: "security", Title: "Pod security"}
}
