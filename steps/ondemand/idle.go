package ondemand

import "carrick/steps"

func idle() steps.Step {
	return steps.Step{
		Name: "idle", Title: "Idle namespaces",
		Why: "",
	}
}
