package vsphere

import "carrick/steps"

func extension() steps.Step {
	return steps.Step{Name: "extension", Title: "Extension"}
}
