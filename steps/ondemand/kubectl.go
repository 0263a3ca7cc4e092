package ondemand

import "carrick/steps"

func kubectl() steps.Step {
	return steps.Step{
		Name: "kubectl", Title: "Root's kubectl",
		Why: "",
	}
}
