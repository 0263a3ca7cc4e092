package ondemand

import "carrick/steps"

func hooks() steps.Step {
	return steps.Step{
		Name: "hooks", Title: "Hooks",
		Why: "",
	}
}
