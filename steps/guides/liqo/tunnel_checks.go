package liqo

import (
	"time"

	"carrick/steps"
)

func tunnelChecks() []steps.Check {
	return append(gatewayChecks(), endpointChecks()...)
}

func gatewayChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "gateway-template", Title: "Liqo has the template of the gateway", On: steps.Both,
			Needs: []string{"kinds-served"},
			Why: "a gateway is made from a template in Liqo's namespace; with none of that name nothing is made, and " +
				"Liqo's log alone says so",
			References: []string{"liqotech/liqo: deployments/liqo/templates/liqo-wireguard-gateway-server-template.yaml, " +
				"liqo-wireguard-gateway-client-template.yaml"},
			Run: gatewayTemplate,
		},
		{
			Name: "node-port", Title: "the port of the nodes is free, or the gateway's own", On: steps.Both,
			Needs: []string{"tenant-namespace"},
			When: func(e steps.Env) bool {
				return listens(e) && e.Answers.Text("network.service-type") == "NodePort"
			},
			Why: "the gateway's Service is not made where its port is taken or out of range, and the gateway never " +
				"says where it listens",
			References: []string{"kubernetes/kubernetes: pkg/registry/core/service/portallocator"},
			Run:        nodePortFree,
		},
		{
			Name: "gateways", Title: "the side has one gateway, of the kind that the answers say", On: steps.Both,
			Needs: []string{"tenant-namespace"},
			Why: "one side must listen and the other connect: two of a kind never meet, and two gateways in one namespace " +
				"hinder each other",
			References: []string{
				"liqotech/liqo: pkg/liqo-controller-manager/networking/external-network/wireguard/utils.go (multiple active " +
					"gateway pods found)",
				"liqotech/liqo: pkg/gateway/forge/utils.go",
			},
			Run: oneGateway,
		},
		{
			Name: "mtu", Title: "both gateways have one MTU, and the path can carry it", On: steps.Both,
			Needs: []string{"gateways"},
			Why:   "with too big an MTU, or two different ones, small pings get through and TLS hangs",
			References: []string{
				"liqotech/liqo#2692", "liqotech/liqo: pkg/liqo-controller-manager/networking/forge (DefaultMTU)",
			},
			Run: oneMTU,
		},
		{
			Name: "gateway-up", Title: "the gateway's pod runs", On: steps.Both, Needs: []string{"gateways"},
			Timeout: 2 * time.Minute,
			Why: "gateway pods are privileged: a namespace with pod security baseline or restricted lets none in; with " +
				"a key of the wrong size they crash",
			References: []string{
				"liqotech/liqo#2135",
				"liqotech/liqo: pkg/liqo-controller-manager/networking/external-network/wireguard/wggatewayserver_controller.go",
			},
			Run: gatewayUp,
		},
	}
}

func endpointChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "server-endpoint", Title: "the gateway that listens says where", On: steps.Both, When: listens,
			Needs: []string{"gateway-up"}, FixedBy: "${side}-server",
			Timeout: balancerWithin,
			Why: "the other side connects to what stands here; a load balancer that is pending, or a Service that was " +
				"refused, leaves it empty",
			References: []string{"liqotech/liqo: pkg/utils/nodeUtils.go", "liqotech/liqo#1668"},
			Run:        serverEndpoint,
		},
		{
			Name: "client-endpoint", Title: "the gateway that connects knows where to", On: steps.Both, When: connects,
			Needs: []string{"gateways", "peer/server-endpoint"}, FixedBy: "${side}-client",
			Why: "the published guide shows 51840, the port of the gateway itself: with a node port it is another one, " +
				"and the datagrams get lost",
			References: []string{page, "liqotech/liqo: deployments/liqo/templates/liqo-wireguard-gateway-client-template.yaml"},
			Run:        clientEndpoint,
		},
		{
			Name: "client-address", Title: "the address that it connects to can be one of the other side", On: steps.Both,
			When: connects, Needs: []string{"peer/server-endpoint"},
			Why: "an address of one machine or one network leads nowhere from another; behind NAT it takes another " +
				"address, or the roles reversed",
			References: []string{"liqotech/liqo: docs/advanced/nat.md"},
			Run:        clientAddress,
		},
		{
			Name: "handshake", Title: "the gateway that listens answers a WireGuard handshake", On: steps.Both, From: fromHere,
			When:  connects,
			Needs: []string{"keys", "peer-key", "peer/keys", "peer/peer-key", "peer/server-endpoint"},
			Why: "a gateway is silent to anything but a handshake with the right keys, so no other look from outside can tell " +
				"whether UDP gets through. " +
				"Looked at from where carrick runs: the pods of this side may have another way",
			References: []string{
				"liqotech/liqo: docs/faq/faq.md (Check the UDP service)", "liqotech/liqo#3048", "liqotech/liqo#1668",
			},
			Run: gatewayAnswers,
		},
		{
			Name: "connection", Title: "the tunnel is up", On: steps.Both, Needs: []string{"gateway-up", "peer/gateway-up"},
			FixedBy: "${side}-public-key", Timeout: 2 * time.Minute,
			Why:        "each gateway pings the other through the tunnel and writes down what it saw; both must see it",
			References: []string{"liqotech/liqo: deployments/liqo/values.yaml (gatewayTemplates.ping)", "liqotech/liqo#3053"},
			Run:        tunnelUp,
		},
	}
}

// fromHere is the vantage point of checks that do not use the API.
const fromHere = "this machine"
