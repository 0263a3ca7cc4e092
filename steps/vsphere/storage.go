package vsphere

import "carrick/steps"

func storage() steps.Step {
	return steps.Step{Name: "storage", Title: "Storage"}
}
