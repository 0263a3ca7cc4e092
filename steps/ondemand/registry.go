package ondemand

import "carrick/steps"

func registry() steps.Step {
	return steps.Step{
		Name: "registry", Title: "Registry",
		Why: "",
	}
}
