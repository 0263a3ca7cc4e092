package ondemand

import "carrick/steps"

func walltime() steps.Step {
	return steps.Step{
		Name: "walltime", Title: "Walltime",
		Why: "",
	}
}
