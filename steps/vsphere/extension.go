package vsphere

import (
	"carrick/cluster"
	"carrick/steps"
)

func extension() steps.Step {
	return steps.Step{Name: "extension", Title: "Extension"}
}

// extensionRights are what it takes to do this step.
func extensionRights(steps.Env) []cluster.Right { return nil }
