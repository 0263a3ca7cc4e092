package vsphere

import "carrick/steps"

func certificates() steps.Step {
	return steps.Step{Name: "certificates", Title: "Certificates"}
}
