package interlink

import "carrick/steps"

func config() steps.Step {
	return steps.Step{
		Name: "config", Title: "Virtual kubelet",
		Why: "w",
		Ask: []steps.Question{},
	}
}
