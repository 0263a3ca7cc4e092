package interlink

import (
	"carrick/steps"
)

func endpoint() steps.Step {
	return steps.Step{
		Name: "endpoint", Title: "Endpoint",
		Why: "What a job will see, looked at from this machine and from the edge node: the name, the port, the certificate " +
			"by the CA that jobs are given and by nothing else, and what is answered without a token.",
		Facts: []steps.Fact{
			{
				Name: "endpoint-ca", Title: "the CA that proves the endpoint", On: steps.Local, Shared: true,
				Learn: learnEndpointCA,
			},
			{
				Name: "endpoint-proved-by", Title: "whose CA proves the endpoint", On: steps.Local, Shared: true,
				Learn: learnProvedBy,
			},
		},
		Checks: endpointChecks(),
	}
}
