package liqo

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// usualMTU and usualPort are liqoctl's defaults for the MTU of a gateway and the port of a GatewayServer
// (liqotech/liqo: pkg/liqo-controller-manager/networking/forge).
const (
	usualMTU  = 1340
	usualPort = 51840
)

func tunnel() steps.Step {
	return steps.Step{
		Name: "tunnel", Title: "Tunnel", When: joins,
		Map: steps.MapRow{Local: "gateway", Remote: "gateway", Arrow: steps.Both},
		Why: "One gateway listens on a UDP port, and the other gateway connects to it. Either side can listen if the other " +
			"side can reach it.",
		Ask: append(serverQuestions(), clientQuestions()...),
		Facts: []steps.Fact{
			{Name: "node-addresses", Title: "the node addresses", On: steps.Both, Shared: true, Learn: allNodeAddresses},
			{Name: "service-cidrs", Title: "the service CIDR", On: steps.Both, Shared: true, Learn: cidrs("service-cidr")},
			{Name: "gateway-server", Title: "the gateway that listens", On: steps.Both, Shared: true, Learn: gatewayServer},
			{Name: "gateway-client", Title: "the gateway that connects", On: steps.Both, Shared: true, Learn: gatewayClient},
			{Name: "connection", Title: "the state of the tunnel", On: steps.Both, Shared: true, Learn: connectionState},
		},
		Actions: slices.Concat(
			onBothSides("server", "Create the consumer's GatewayServer", "Create the provider's GatewayServer", steps.Action{
				When: listens, Needs: []string{"keys", "configuration-ready", "node-port"},
				Doer: vanishing{action.Manifest{File: "gateway-server.yaml", Values: action.Values{
					"tenant-namespace": tenantSpace,
					"name":             namedAfterPeer(gatewayServers),
					"node-port":        gatewayNodePort,
					"load-balancer-ip": loadBalancerIP,
				}}, sideConnections, []childKind{{connections, "Connection"}}},
			}),
			gatewayRestart(),
			onBothSides("client", "Create the consumer's GatewayClient", "Create the provider's GatewayClient", steps.Action{
				When: connects, Needs: []string{"keys", "peer-key", "configuration-ready", "peer/server-endpoint"},
				First: []string{"handshake"},
				Doer: vanishing{action.Manifest{File: "gateway-client.yaml", Values: action.Values{
					"tenant-namespace": tenantSpace,
					"name":             namedAfterPeer(gatewayClients),
					"address":          endpointAddress,
					"port":             endpointPort,
				}}, sideConnections, nil}, // no kinds, because the server action searches for Connections
			}),
		),
		Checks: tunnelChecks(),
	}
}

func serverQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "network.server", Title: "Side that listens", Kind: steps.Pick,
			Of:   []steps.Choice{{Value: provider, Title: "the provider"}, {Value: consumer, Title: "the consumer"}},
			Help: "The other side must reach this side over UDP. Either the provider or the consumer can listen.",
			Default: func(e steps.Env) (any, string) {
				if _, err := e.Own.Value("gateway-server"); err == nil {
					return consumer, "from the consumer's GatewayServer"
				}
				return provider, "from the published guide"
			},
		},
		{
			Key: "network.service-type", Title: "Gateway Service type", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: "NodePort", Title: "a node port"},
				{Value: "LoadBalancer", Title: "a load balancer that supports UDP"},
				{Value: "ClusterIP", Title: "cluster-internal, with traffic that you forward to it yourself"},
			},
			Help:    "How the gateway is exposed to the other side. Not every cloud load balancer supports UDP.",
			Default: ofServer("service-type", "NodePort", "from the published guide"),
		},
		{
			Key: "network.node-port", Title: "Node port", Kind: steps.Port, Opt: true,
			Help:    "A port such as 30742, if a firewall must allow it. Empty: the cluster chooses a free port.",
			When:    func(e steps.Env) bool { return e.Answers.Text("network.service-type") == "NodePort" },
			Default: ofServer("node-port", nil, ""),
		},
		{
			Key: "network.load-balancer-ip", Title: "Load balancer address", Kind: steps.HostName, Opt: true,
			Help:    "An IP address, if your load balancer supports requesting one. Empty: the load balancer chooses it.",
			When:    func(e steps.Env) bool { return e.Answers.Text("network.service-type") == "LoadBalancer" },
			Default: ofServer("load-balancer-ip", nil, ""),
		},
		{
			Key: "network.port", Title: "Gateway port", Kind: steps.Port,
			Help: "The UDP port on which the gateway listens inside the cluster, such as 51840. With a load balancer, the " +
				"other side connects to this port, too.",
			Default: ofServer("port", usualPort, "liqoctl's default"),
		},
		{
			Key: "network.mtu", Title: "Tunnel MTU", Kind: steps.Number,
			Help: "A number of bytes, such as 1340. It must be equal on both sides, and at most the path MTU minus 80. If " +
				"it is too large, pings pass but TLS hangs.",
			Default: ofServer("mtu", usualMTU, "liqoctl's default"),
		},
	}
}

func clientQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "network.address", Title: "Address that the other side connects to", Kind: steps.HostName, Opt: true,
			Adopt: overridden("address", "address"),
			Help: "An IP address or a host name, such as 203.0.113.7. It differs from the gateway's own address if NAT " +
				"translates addresses.",
			Default: ofServer("address", nil, ""),
		},
		{
			Key: "network.client-port", Title: "Port that the other side connects to", Kind: steps.Port, Opt: true,
			Adopt:   overridden("port", "endpoint-port"),
			Help:    "A UDP port, such as 30742. It differs from the gateway's own port only if NAT translates ports.",
			Default: ofServer("endpoint-port", nil, ""),
		},
	}
}

// servers returns the facts of the side whose gateway listens.
func servers(e steps.Env) steps.Facts {
	if e.Answers.Text("network.server") == e.SideName() {
		return e.Own
	}
	return e.Peer
}

// ofServer returns a Default function for a question. The default is the field named key in the fact about the existing
// GatewayServer. If that field does not exist, the default is value, and from is shown as its source.
func ofServer(key string, value any, from string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		if v := servers(e).Field("gateway-server", key); v != nil {
			return v, "from the GatewayServer"
		}
		return value, from
	}
}

// sideGateways returns the gateways in this side's tenant namespace, with GatewayServers first.
func sideGateways(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	ns := tenantNamespace(e)
	var servers, clients []*unstructured.Unstructured
	err := check.Together(
		func() (err error) { servers, err = living(ctx, e, gatewayServers, ns, ""); return err },
		func() (err error) { clients, err = living(ctx, e, gatewayClients, ns, ""); return err },
	)
	return slices.Concat(servers, clients), err
}

func set(m map[string]any, key string, v any) {
	if v != "" && v != 0 {
		m[key] = v
	}
}

func gatewayServer(ctx context.Context, e steps.Env) (any, error) {
	found, err := living(ctx, e, gatewayServers, tenantNamespace(e), "")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, steps.Absent("the %s has no GatewayServer yet", e.SideName())
	}
	g := found[0]
	m := map[string]any{"name": g.GetName()}
	set(m, "service-type", text(g, "spec", "endpoint", "serviceType"))
	set(m, "port", intAt(g, "spec", "endpoint", "port"))
	set(m, "node-port", intAt(g, "spec", "endpoint", "nodePort"))
	set(m, "load-balancer-ip", text(g, "spec", "endpoint", "loadBalancerIP"))
	set(m, "mtu", intAt(g, "spec", "mtu"))
	if at := gatewayAddresses(g); len(at) > 0 {
		m["address"] = at[0]
		m["addresses"] = at
	}
	set(m, "endpoint-port", intAt(g, "status", "endpoint", "port"))
	return m, nil
}

// gatewayAddresses returns the addresses on which a GatewayServer listens. It omits the empty address that Liqo writes
// while the node of the gateway's pod is not Ready (liqotech/liqo v1.2.0:
// pkg/liqo-controller-manager/networking/external-network/wireguard/wggatewayserver_controller.go,
// forgeEndpointStatusNodePort).
func gatewayAddresses(g *unstructured.Unstructured) []string {
	return slices.DeleteFunc(stringsAt(g, "status", "endpoint", "addresses"), func(at string) bool { return at == "" })
}

func gatewayClient(ctx context.Context, e steps.Env) (any, error) {
	found, err := living(ctx, e, gatewayClients, tenantNamespace(e), "")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, steps.Absent("the %s has no GatewayClient yet", e.SideName())
	}
	g := found[0]
	m := map[string]any{"name": g.GetName()}
	if at := stringsAt(g, "spec", "endpoint", "addresses"); len(at) > 0 {
		m["address"] = at[0]
	}
	set(m, "port", intAt(g, "spec", "endpoint", "port"))
	set(m, "mtu", intAt(g, "spec", "mtu"))
	return m, nil
}

// allNodeAddresses returns the addresses of all physical nodes. A node port is reachable at each of these addresses.
func allNodeAddresses(ctx context.Context, e steps.Env) (any, error) {
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range nodes {
		if n.Labels["liqo.io/type"] == "virtual-node" {
			continue
		}
		for _, a := range n.Status.Addresses {
			out = append(out, a.Address)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func connectionState(ctx context.Context, e steps.Env) (any, error) {
	found, err := living(ctx, e, connections, tenantNamespace(e), "")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, steps.Absent("the %s has no Connection yet", e.SideName())
	}
	return text(found[0], "status", "value"), nil
}

func gatewayNodePort(_ context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("network.service-type") != "NodePort" {
		return nil, nil
	}
	return e.Answers.Value("network.node-port"), nil
}

func loadBalancerIP(_ context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("network.service-type") != "LoadBalancer" {
		return nil, nil
	}
	return e.Answers.Value("network.load-balancer-ip"), nil
}

const noEndpoint = "the gateway that listens has no address yet"

func endpointAddress(_ context.Context, e steps.Env) (any, error) {
	if v := e.Answers.Text("network.address"); v != "" {
		return v, nil
	}
	return nil, steps.Absent(noEndpoint)
}

func endpointPort(_ context.Context, e steps.Env) (any, error) {
	if v := e.Answers.Int("network.client-port"); v != 0 {
		return v, nil
	}
	return nil, steps.Absent(noEndpoint)
}
