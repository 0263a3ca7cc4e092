package interlink

import "carrick/steps"

func exposure() steps.Step {
	return steps.Step{
		Name: "exposure", Title: "Exposure",
		Why: "w",
		Ask: []steps.Question{
			{Key: "exposure.mode", Title: "How jobs reach the API", Kind: steps.Pick, Help: "h", Of: []steps.Choice{{Value: "proxy", Title: "proxy: a small TLS proxy"}, {Value: "direct", Title: "direct: the API server itself"}, {Value: "ingress", Title: "ingress: the published guide's chain"}}, Default: steps.Fixed("proxy", "recommended")},
			{Key: "exposure.address", Title: "Address that jobs use", Kind: steps.HostName, Help: "h"},
			{Key: "exposure.port", Title: "Port", Kind: steps.Port, Help: "h", Default: steps.Fixed(60443, "the published guide")},
			{Key: "exposure.type", Title: "How the proxy is exposed", Kind: steps.Pick, Help: "h", Of: []steps.Choice{{Value: "LoadBalancer", Title: "LoadBalancer"}, {Value: "NodePort", Title: "NodePort"}, {Value: "hostPort", Title: "hostPort"}}, Default: steps.Fixed("LoadBalancer", "recommended")},
			{Key: "exposure.sources", Title: "Networks of the compute nodes", Kind: steps.CIDR, Help: "h", Many: true, Opt: true},
			{Key: "exposure.namespace", Title: "Namespace of the endpoint", Kind: steps.Name, Help: "h", Default: steps.Fixed("interlink-api", "carrick")},
		},
	}
}
