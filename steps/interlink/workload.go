package interlink

import "carrick/steps"

func workload() steps.Step {
	return steps.Step{
		Name: "workload", Title: "Workload",
		Why: "w",
		Ask: []steps.Question{
			{Key: "workload.namespace", Title: "Namespace of the jobs", Kind: steps.Name, Help: "h", Default: steps.Fixed("default", "the published guide")},
			{Key: "workload.account", Title: "ServiceAccount of the jobs", Kind: steps.Name, Help: "h", Default: steps.Fixed("default", "the published guide")},
			{Key: "workload.argo", Title: "Give it what Argo needs", Kind: steps.YesNo, Help: "h", Default: steps.Fixed(false, "only where it is wanted")},
		},
	}
}
