package interlink

import "carrick/steps"

func test() steps.Step {
	return steps.Step{
		Name: "test", Title: "Test",
		Why: "w",
		Ask: []steps.Question{
			{Key: "test.job", Title: "Run the test Job", Kind: steps.YesNo, Help: "h", Default: steps.Fixed(true, "the proof")},
			{Key: "test.image", Title: "Image of the test Job", Kind: steps.Text, Help: "h", Default: steps.Fixed("registry.k8s.io/kubectl:v1.36.0", "upstream")},
			{Key: "test.watch", Title: "Seconds that a watch is held", Kind: steps.Number, Help: "h", Default: steps.Fixed(75, "longer than the 60 s after which proxies cut")},
		},
	}
}
