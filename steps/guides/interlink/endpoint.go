package interlink

import (
	"carrick/steps"
)

func endpoint() steps.Step {
	return steps.Step{
		Name: "endpoint", Title: "Endpoint",
		Map: steps.MapRow{Local: "endpoint", Remote: "compute nodes", Arrow: steps.Local},
		Why: "carrick checks what a job sees, from this machine and from the edge node: the address, the port, the " +
			"certificate against the CA that jobs get, and the API's responses without a token.",
		Facts: []steps.Fact{
			{
				Name: "endpoint-ca", Title: "the CA that the endpoint's certificate verifies against", On: steps.Local,
				Shared: true,
				Learn:  learnEndpointCA,
			},
			{
				Name: "endpoint-proved-by", Title: "the kind of CA that signs the endpoint's certificate", On: steps.Local,
				Shared: true,
				Learn:  learnProvedBy,
			},
		},
		Checks: endpointChecks(),
	}
}
