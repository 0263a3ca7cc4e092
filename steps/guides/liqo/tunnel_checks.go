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
			Name: "gateway-template", Title: "The gateway's template exists", On: steps.Both,
			Needs: []string{"crds-installed"},
			Why: "Liqo creates a gateway from a template in its namespace; if the template is missing, Liqo creates no " +
				"gateway and only logs an error.",
			References: []string{"liqotech/liqo: deployments/liqo/templates/liqo-wireguard-gateway-server-template.yaml, " +
				"liqo-wireguard-gateway-client-template.yaml"},
			Run: gatewayTemplate,
		},
		{
			Name: "node-port", Title: "The node port is free or the gateway's own", On: steps.Both,
			Needs: []string{"tenant-namespace"},
			When: func(e steps.Env) bool {
				return listens(e) && e.Answers.Text("network.service-type") == "NodePort"
			},
			Why: "If the port is in use or out of range, the gateway's Service is not created, and the gateway never " +
				"gets an endpoint.",
			References: []string{"kubernetes/kubernetes: pkg/registry/core/service/portallocator"},
			Run:        nodePortFree,
		},
		{
			Name: "gateways", Title: "This side has exactly one gateway, of the right kind", On: steps.Both,
			Needs: []string{"tenant-namespace"},
			Why: "One side must listen and the other connect; two gateways of one kind never connect, and two gateways in " +
				"one namespace conflict.",
			References: []string{
				"liqotech/liqo: pkg/liqo-controller-manager/networking/external-network/wireguard/utils.go (multiple active " +
					"gateway pods found)",
				"liqotech/liqo: pkg/gateway/forge/utils.go",
			},
			Run: oneGateway,
		},
		{
			Name: "mtu", Title: "Both gateways have the same MTU, and the path supports it", On: steps.Both,
			Needs: []string{"gateways"},
			Why:   "If the MTU is too large or differs, small pings pass but TLS hangs.",
			References: []string{
				"liqotech/liqo#2692", "liqotech/liqo: pkg/liqo-controller-manager/networking/forge (DefaultMTU)",
			},
			Run: oneMTU,
		},
		{
			Name: "gateway-up", Title: "The gateway pod is ready", On: steps.Both, Needs: []string{"gateways"},
			Timeout: 2 * time.Minute,
			Why: "Gateway pods are privileged, so Pod Security levels baseline and restricted block them; with a key of " +
				"the wrong size they crash.",
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
			Name: "server-endpoint", Title: "The gateway that listens reports its endpoint", On: steps.Both, When: listens,
			Needs: []string{"gateway-up"}, FixedBy: "${side}-server",
			Timeout: balancerWithin,
			Why: "The other side connects to this endpoint; it stays empty if the load balancer is pending or the API " +
				"server rejects the Service.",
			References: []string{"liqotech/liqo: pkg/utils/nodeUtils.go", "liqotech/liqo#1668"},
			Run:        serverEndpoint,
		},
		{
			Name: "client-endpoint", Title: "The gateway that connects has the right endpoint", On: steps.Both, When: connects,
			Needs: []string{"gateways", "peer/server-endpoint"}, FixedBy: "${side}-client",
			Why: "The published guide shows 51840, the gateway's own port; a node port differs, and packets to " +
				"51840 are lost.",
			References: []string{page, "liqotech/liqo: deployments/liqo/templates/liqo-wireguard-gateway-client-template.yaml"},
			Run:        clientEndpoint,
		},
		{
			Name: "client-address", Title: "The other side can plausibly reach the address", On: steps.Both,
			When: connects, Needs: []string{"peer/server-endpoint"},
			Why: "Loopback and private addresses are not reachable from another network; behind NAT, use another " +
				"address or let the other side listen.",
			References: []string{"liqotech/liqo: docs/advanced/nat.md"},
			Run:        clientAddress,
		},
		{
			Name: "handshake", Title: "The gateway that listens answers a WireGuard handshake", On: steps.Both, From: fromHere,
			When:  connects,
			Needs: []string{"keys", "peer-key", "peer/keys", "peer/peer-key", "peer/server-endpoint"},
			Why: "A gateway answers only a handshake with the right keys, so no other test of UDP works from outside; pods " +
				"can use another network path.",
			References: []string{
				"liqotech/liqo: docs/faq/faq.md (Check the UDP service)", "liqotech/liqo#3048", "liqotech/liqo#1668",
			},
			Run: gatewayAnswers,
		},
		{
			Name: "connection", Title: "The tunnel is up", On: steps.Both, Needs: []string{"gateway-up", "peer/gateway-up"},
			FixedBy: "${side}-public-key", Timeout: 2 * time.Minute,
			Why:        "Each gateway pings the other through the tunnel and records the result; both must succeed.",
			References: []string{"liqotech/liqo: deployments/liqo/values.yaml (gatewayTemplates.ping)", "liqotech/liqo#3053"},
			Run:        tunnelUp,
		},
	}
}

// fromHere is the value of Check.From for checks that run on this machine without the API server.
const fromHere = "this machine"
