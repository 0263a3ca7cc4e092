package ondemand

import "carrick/steps"

func oidc() steps.Step {
	return steps.Step{
		Name: "oidc", Title: "OIDC",
		Why: "",
	}
}
