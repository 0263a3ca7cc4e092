package interlink

import "carrick/steps"

func proxy() steps.Step {
	return steps.Step{
		Name: "proxy", Title: "Proxy",
		Why: "w",
		Ask: []steps.Question{},
	}
}
