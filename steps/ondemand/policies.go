package ondemand

import "carrick/steps"

func policies() steps.Step {
	return steps.Step{
		Name: "policies", Title: "Policies",
		Why: "",
	}
}
