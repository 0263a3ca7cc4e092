package interlink

import "carrick/steps"

func certificates() steps.Step {
	return steps.Step{
		Name: "certificates", Title: "Certificates",
		Why: "w",
		Ask: []steps.Question{
			{Key: "cert.source", Title: "Who signs the endpoint's certificate", Kind: steps.Pick, Help: "h", Of: []steps.Choice{{Value: "cert-manager", Title: "cert-manager"}, {Value: "own", Title: "own: a CA that carrick makes"}, {Value: "public", Title: "public: a public CA"}}, Default: steps.Fixed("cert-manager", "recommended")},
			{Key: "cert.days", Title: "Days that the certificate lasts", Kind: steps.Number, Help: "h", Default: steps.Fixed(90, "recommended")},
			{Key: "cert.ca-years", Title: "Years that the CA lasts", Kind: steps.Number, Help: "h", Default: steps.Fixed(10, "recommended")},
			{Key: "cert.secret", Title: "Secret of the public certificate", Kind: steps.Name, Help: "h", Opt: true},
		},
	}
}
