package interlink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"carrick/steps"
	"carrick/steps/action"
)

// Values of exposure.mode: how jobs reach the API.
const (
	byProxy   = "proxy"
	byServer  = "direct"
	byIngress = "ingress"
)

// Values of exposure.type: how the proxy's port is opened.
const (
	asBalancer = "LoadBalancer"
	asNodePort = "NodePort"
	asHostPort = "hostPort"
)

// ingressNamespace is the namespace that the published guide uses for its Ingress.
const ingressNamespace = "ingress-nginx-internal"

func exposure() steps.Step {
	return steps.Step{
		Name: "exposure", Title: "Exposure",
		Map: steps.MapRow{Local: "exposed port"},
		Why: "Jobs on compute nodes cannot reach the cluster-internal address of the API. They can use a small TLS proxy, " +
			"the API server itself, or the published guide's ingress, whose files carrick only checks and exports with " +
			"corrections.",
		Ask:   exposureQuestions(),
		Facts: exposureFacts(),
		Actions: []steps.Action{{
			Name: "namespace", Title: "Create the proxy's namespace", On: steps.Local, Needs: []string{"signed-in"},
			When: in(byProxy),
			Doer: action.Manifest{File: "namespace.yaml", Values: action.Values{"level": podLevel}},
		}, {
			Name: "ingress-files", Title: "Write the published guide's files with corrections", On: steps.Local,
			When: in(byIngress),
			Doer: repairedFiles(),
		}},
		Checks: append(exposureChecks(), chainChecks()...),
	}
}

func exposureQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "exposure.mode", Title: "API exposure for jobs", Kind: steps.Pick,
			Default: steps.Fixed(byProxy, "recommended"), Adopt: adoptMode,
			Help: "proxy: serves four API paths with its own certificate and firewall rule. direct: jobs connect to the API " +
				"server itself. Compute nodes then reach everything that it serves, and its certificate must include the " +
				"address. ingress: the published guide's chain. ingress-nginx gets no more fixes, and tokens cross the cluster " +
				"over plain HTTP.",
			Of: []steps.Choice{
				{Value: byProxy, Title: "proxy: a small TLS proxy in the cluster"},
				{Value: byServer, Title: "direct: the API server itself, no proxy"},
				{Value: byIngress, Title: "ingress: the existing chain of the published guide"},
			},
		},
		{
			Key: "exposure.namespace", Title: "Namespace of the endpoint", Kind: steps.Namespace, When: not(byServer),
			Adopt: adoptEndpointNamespace,
			Help: "It contains only the proxy and its certificates, such as interlink-api. In mode ingress, enter the " +
				"namespace of the published guide's chain.",
			Default: func(e steps.Env) (any, string) {
				if mode(e) == byIngress {
					return ingressNamespace, "from the published guide"
				}
				return "interlink-api", "default"
			},
		},
		{
			Key: "exposure.type", Title: "Exposure of the proxy's port", Kind: steps.Pick, When: in(byProxy),
			Default: defaultType, Adopt: adoptType,
			Help: "LoadBalancer requires a cloud or MetalLB (an IPAddressPool and an L2Advertisement), and restricts source " +
				"addresses best. NodePort requires only a port from 30000 on. hostPort uses a port of one node, and its " +
				"namespace must not enforce the Pod Security level restricted. A kind cluster opens only the ports that " +
				"extraPortMappings listed when it was created.",
			Of: []steps.Choice{
				{Value: asBalancer, Title: "LoadBalancer: a dedicated address"},
				{Value: asNodePort, Title: "NodePort: a high port of the nodes"},
				{Value: asHostPort, Title: "hostPort: a port of one node"},
			},
		},
		{
			Key: "exposure.address", Title: "Address that jobs use", Kind: steps.HostName, Default: defaultAddress,
			Adopt: adoptAddress,
			Help: "Enter a host name or IP address of the endpoint that compute nodes can reach, not only the edge node. " +
				"carrick writes the address into the certificate, and every job gets it.",
		},
		{
			Key: "exposure.port", Title: "Port that jobs use", Kind: steps.Port, Default: defaultPort, Adopt: adoptPort,
			Help: "The firewall must allow connections from the compute nodes' network to this port.",
		},
		{
			Key: "exposure.sources", Title: "Networks of the compute nodes", Kind: steps.CIDR, Many: true, Opt: true,
			When: in(byProxy), Adopt: adoptSources,
			Help: "Only these networks can reach the proxy. Enter CIDRs, such as 10.20.0.0/16. If empty, everyone can " +
				"connect: the API still requires a token, but only a firewall protects the port.",
		},
		{
			Key: "exposure.image", Title: "Proxy image", Kind: steps.Text, NotFromPeer: true, When: in(byProxy),
			Adopt: adoptImage, Check: checkImage,
			Help: "Enter an nginx image that runs without root. If nodes pull from a site registry, enter the name of the " +
				"image there.",
			Default: steps.Fixed(proxyImage, "upstream's image"),
		},
	}
}

func mode(e steps.Env) string { return e.Answers.Text("exposure.mode") }

// in returns a condition that is true if exposure.mode is one of modes.
func in(modes ...string) func(steps.Env) bool {
	return func(e steps.Env) bool {
		for _, m := range modes {
			if mode(e) == m {
				return true
			}
		}
		return false
	}
}

func not(m string) func(steps.Env) bool {
	return func(e steps.Env) bool { return mode(e) != m }
}

// space returns the namespace of the endpoint.
func space(e steps.Env) string { return e.Answers.Text("exposure.namespace") }

// podLevel returns the pod security level for the proxy's namespace. It is privileged for a hostPort, because no other
// level allows hostPorts. Otherwise it is restricted.
func podLevel(_ context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("exposure.type") == asHostPort {
		return "privileged", nil
	}
	return "restricted", nil
}

func checkImage(v string) error {
	if v == "" || !plainWord.MatchString(v) {
		return fmt.Errorf("%q is not an image name", v)
	}
	return nil
}

func exposureFacts() []steps.Fact {
	return []steps.Fact{
		{
			Name: "endpoint", Title: "the address and port of the endpoint", On: steps.Local, Shared: true, Learn: learnEndpoint,
		},
		{
			Name: "endpoint-mode", Title: "how the API is exposed", On: steps.Local, Shared: true,
			Learn: func(_ context.Context, e steps.Env) (any, error) { return mode(e), nil },
		},
		{
			Name: "proxy-exists", Title: "whether the proxy's Service exists", On: steps.Local, Shared: true,
			Learn: func(ctx context.Context, e steps.Env) (any, error) {
				s, err := proxyService(ctx, e)
				return s != nil, err
			},
		},
		{
			Name: "balancer-there", Title: "whether load balancers get addresses in the cluster", On: steps.Local,
			Learn: learnBalancer,
		},
		{
			Name: "balancer-address", Title: "the address of the proxy's load balancer", On: steps.Local,
			Learn: learnBalancerAddress,
		},
		{Name: "node-address", Title: "an address of a node that runs pods", On: steps.Local, Learn: learnNodeAddress},
		{Name: "chain-address", Title: "the address that the Ingress serves", On: steps.Local, Learn: learnChainAddress},
	}
}

func learnEndpoint(_ context.Context, e steps.Env) (any, error) {
	address, port := e.Answers.Text("exposure.address"), e.Answers.Int("exposure.port")
	if address == "" || port == 0 {
		return nil, steps.Absent("exposure.address or exposure.port is not set yet")
	}
	return net.JoinHostPort(address, strconv.Itoa(port)), nil
}

func defaultType(e steps.Env) (any, string) {
	if there, err := e.Own.Text("balancer-there"); err == nil && there != "" {
		return asBalancer, "default, because " + there
	}
	return asNodePort, "default, because no Service of type LoadBalancer has an address"
}

func defaultAddress(e steps.Env) (any, string) {
	fact, from := "node-address", "from a node of the cluster"
	switch {
	case mode(e) == byServer:
		host, _, err := contextServer(e)
		if err != nil {
			return nil, ""
		}
		return host, "from this kubeconfig"
	case mode(e) == byIngress:
		fact, from = "chain-address", "from the Ingress"
	case e.Answers.Text("exposure.type") == asBalancer:
		fact, from = "balancer-address", "from Service "+proxyName
	}
	v, err := e.Own.Text(fact)
	if err != nil || v == "" {
		return nil, ""
	}
	return v, from
}

func defaultPort(e steps.Env) (any, string) {
	switch {
	case mode(e) == byServer:
		_, port, err := contextServer(e)
		if err != nil {
			return 6443, "kubeadm's default"
		}
		return port, "from this kubeconfig"
	case mode(e) == byProxy && e.Answers.Text("exposure.type") == asNodePort:
		return 30443, "default, in the range of node ports"
	}
	return 60443, "from the published guide"
}

// contextServer returns the host and port of the API server in the local side's kubeconfig.
func contextServer(e steps.Env) (host string, port int, err error) {
	text, err := e.Own.Text("api-server")
	if err != nil {
		return "", 0, err
	}
	return hostPort(text)
}

// hostPort returns the host and port in server, the URL of an API server.
func hostPort(server string) (string, int, error) {
	host, port, err := splitURL(server)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 {
		return "", 0, errors.New("the API server's address has no port")
	}
	return host, n, nil
}
