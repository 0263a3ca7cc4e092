package vsphere

import "carrick/steps"

func mutation() steps.Step {
	return steps.Step{Name: "mutation", Title: "Mutation"}
}
