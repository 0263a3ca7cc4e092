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

// usualMTU is liqoctl's MTU for both gateways (liqotech/liqo:
// pkg/liqo-controller-manager/networking/forge), and usualPort the port on which they listen.
const (
	usualMTU  = 1340
	usualPort = 51840
)

func tunnel() steps.Step {
	return steps.Step{
		Name: "tunnel", Title: "Tunnel", When: joins,
		Why: "One gateway listens on a UDP port, the other connects to it. Which side listens has nothing to do with who " +
			"consumes: take the one that the other can reach.",
		Ask: append(serverQuestions(), clientQuestions()...),
		Facts: []steps.Fact{
			{Name: "node-addresses", Title: "the addresses of the nodes", On: steps.Both, Shared: true, Learn: allNodeAddresses},
			{Name: "service-cidrs", Title: "the CIDR of services", On: steps.Both, Shared: true, Learn: cidrs("service-cidr")},
			{Name: "gateway-server", Title: "the gateway that listens", On: steps.Both, Shared: true, Learn: gatewayServer},
			{Name: "gateway-client", Title: "the gateway that connects", On: steps.Both, Shared: true, Learn: gatewayClient},
			{Name: "connection", Title: "the state of the tunnel", On: steps.Both, Shared: true, Learn: connectionState},
		},
		Actions: append(
			twice("server", "Have the consumer's gateway listen", "Have the provider's gateway listen", steps.Action{
				When: listens, Needs: []string{"keys", "configuration-ready", "node-port"},
				Doer: vanishing{action.Manifest{File: "gateway-server.yaml", Values: action.Values{
					"tenant-namespace": tenantSpace,
					"name":             namedAfterPeer(gatewayServers),
					"node-port":        gatewayNodePort,
					"load-balancer-ip": loadBalancerIP,
				}}, sideConnections, []childKind{{connections, "Connection"}}},
			}),
			twice("client", "Have the consumer's gateway connect", "Have the provider's gateway connect", steps.Action{
				When: connects, Needs: []string{"keys", "peer-key", "configuration-ready", "peer/server-endpoint"},
				First: []string{"handshake"},
				Doer: vanishing{action.Manifest{File: "gateway-client.yaml", Values: action.Values{
					"tenant-namespace": tenantSpace,
					"name":             namedAfterPeer(gatewayClients),
					"address":          endpointAddress,
					"port":             endpointPort,
				}}, sideConnections, nil}, // the previous action waits for the Connections
			})...),
		Checks: tunnelChecks(),
	}
}

func serverQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "network.server", Title: "Which side listens", Kind: steps.Pick,
			Of:   []steps.Choice{{Value: provider, Title: "the provider"}, {Value: consumer, Title: "the consumer"}},
			Help: "The other one must reach it by UDP. The roles of the network have nothing to do with who consumes.",
			Default: func(e steps.Env) (any, string) {
				if _, err := e.Own.Value("gateway-server"); err == nil {
					return consumer, "it has a gateway that listens"
				}
				return provider, "the published guide"
			},
		},
		{
			Key: "network.service-type", Title: "How the gateway is exposed", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: "NodePort", Title: "a port of the nodes"},
				{Value: "LoadBalancer", Title: "a load balancer that carries UDP"},
				{Value: "ClusterIP", Title: "not by Kubernetes: something of yours leads to it"},
			},
			Help:    "Not every cloud's load balancer carries UDP.",
			Default: ofServer("service-type", "NodePort", "the published guide"),
		},
		{
			Key: "network.node-port", Title: "Port of the nodes", Kind: steps.Port, Opt: true,
			Help:    "For a firewall that must know it. Empty: the cluster chooses one that is free.",
			When:    func(e steps.Env) bool { return e.Answers.Text("network.service-type") == "NodePort" },
			Default: ofServer("node-port", nil, ""),
		},
		{
			Key: "network.load-balancer-ip", Title: "Address of the load balancer", Kind: steps.HostName, Opt: true,
			Help:    "Only where the provider of load balancers lets you ask for one. Empty: it chooses.",
			When:    func(e steps.Env) bool { return e.Answers.Text("network.service-type") == "LoadBalancer" },
			Default: ofServer("load-balancer-ip", nil, ""),
		},
		{
			Key: "network.port", Title: "Port of the gateway", Kind: steps.Port,
			Help:    "Where the gateway itself listens; with a load balancer also the port that others connect to.",
			Default: ofServer("port", usualPort, "as liqoctl does"),
		},
		{
			Key: "network.mtu", Title: "MTU of the tunnel", Kind: steps.Number,
			Help: "The same on both sides; at most the path's own less 80. Too big a one lets pings through and " +
				"makes TLS hang.",
			Default: ofServer("mtu", usualMTU, "as liqoctl does"),
		},
	}
}

func clientQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "network.address", Title: "Address that the other side connects to", Kind: steps.HostName, Opt: true,
			Adopt:   overridden("address", "address"),
			Help:    "Another one than the gateway's own where NAT stands in between, or a name.",
			Default: ofServer("address", nil, ""),
		},
		{
			Key: "network.client-port", Title: "Port that the other side connects to", Kind: steps.Port, Opt: true,
			Adopt:   overridden("port", "endpoint-port"),
			Help:    "Another one than the gateway's own only where something in between translates ports.",
			Default: ofServer("endpoint-port", nil, ""),
		},
	}
}

// servers returns the facts of the side that listens, for a question of the consumer.
func servers(e steps.Env) steps.Facts {
	if e.Answers.Text("network.server") == e.SideName() {
		return e.Own
	}
	return e.Peer
}

// ofServer returns a default: the value of the existing gateway, or else the given value.
func ofServer(key string, value any, from string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		if v := servers(e).Field("gateway-server", key); v != nil {
			return v, "the gateway that listens"
		}
		return value, from
	}
}

// sideGateways returns the gateways in the side's tenant namespace, servers first.
func sideGateways(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	ns := tenantNamespace(e)
	var servers, clients []*unstructured.Unstructured
	err := check.Together(
		func() (err error) { servers, err = living(ctx, e, gatewayServers, ns, ""); return err },
		func() (err error) { clients, err = living(ctx, e, gatewayClients, ns, ""); return err },
	)
	return slices.Concat(servers, clients), err
}

// set adds a value to a map unless it is empty.
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
		return nil, steps.Absent("no gateway of the %s listens yet", e.SideName())
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

// gatewayAddresses returns where a GatewayServer listens. Liqo writes an empty address while
// the node of the gateway's pod is not Ready (liqotech/liqo v1.2.0:
// pkg/liqo-controller-manager/networking/external-network/wireguard/
// wggatewayserver_controller.go, forgeEndpointStatusNodePort).
func gatewayAddresses(g *unstructured.Unstructured) []string {
	return slices.DeleteFunc(stringsAt(g, "status", "endpoint", "addresses"), func(at string) bool { return at == "" })
}

func gatewayClient(ctx context.Context, e steps.Env) (any, error) {
	found, err := living(ctx, e, gatewayClients, tenantNamespace(e), "")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, steps.Absent("no gateway of the %s connects yet", e.SideName())
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

// allNodeAddresses returns the addresses of all nodes; a node port is reachable at each of
// them.
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
