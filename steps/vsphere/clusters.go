package vsphere

import "carrick/steps"

func clusters() steps.Step {
	return steps.Step{Name: "clusters", Title: "Clusters"}
}
