package interlink

import "carrick/steps"

func sides() steps.Step {
	return steps.Step{
		Name: "sides", Title: "Cluster and edge",
		Why: "w",
		Ask: []steps.Question{
			{Key: "vk.namespace", Title: "Namespace of InterLink", Kind: steps.Name, Help: "h", Default: steps.Fixed("interlink", "the published guide")},
			{Key: "vk.node", Title: "Name of the virtual node", Kind: steps.Name, Help: "h", Default: steps.Fixed("virtual-node", "the chart")},
			{Key: "vk.job-hours", Title: "Hours that the longest job runs", Kind: steps.Number, Help: "h", Default: steps.Fixed(72, "three days")},
		},
	}
}
