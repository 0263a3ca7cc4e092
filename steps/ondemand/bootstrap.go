package ondemand

import "carrick/steps"

func bootstrap() steps.Step {
	return steps.Step{
		Name: "bootstrap", Title: "Bootstrap",
		Why: "",
	}
}
