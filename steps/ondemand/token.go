package ondemand

import "carrick/steps"

func token() steps.Step {
	return steps.Step{
		Name: "token", Title: "Token",
		Why: "",
	}
}
