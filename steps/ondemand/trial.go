package ondemand

import "carrick/steps"

func trial() steps.Step {
	return steps.Step{
		Name: "trial", Title: "Trial user",
		Why: "",
	}
}
