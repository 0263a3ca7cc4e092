package vsphere

import "carrick/steps"

func profile() steps.Step {
	return steps.Step{Name: "profile", Title: "Profile"}
}
