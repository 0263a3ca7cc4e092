package interlink

import "carrick/steps"

func endpoint() steps.Step {
	return steps.Step{
		Name: "endpoint", Title: "Endpoint",
		Why: "w",
		Ask: []steps.Question{},
	}
}
