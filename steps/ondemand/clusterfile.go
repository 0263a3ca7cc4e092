package ondemand

import "carrick/steps"

func clusterFile() steps.Step {
	return steps.Step{
		Name: "clusterfile", Title: "Cluster file",
		Why: "",
	}
}
