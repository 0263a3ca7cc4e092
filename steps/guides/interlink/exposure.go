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

// These are the ways to expose the API.
const (
	byProxy   = "proxy"
	byServer  = "direct"
	byIngress = "ingress"
)

// These are the ways to open the proxy's port.
const (
	asBalancer = "LoadBalancer"
	asNodePort = "NodePort"
	asHostPort = "hostPort"
)

// ingressNamespace is the namespace of the published guide's chain.
const ingressNamespace = "ingress-nginx-internal"

func exposure() steps.Step {
	return steps.Step{
		Name: "exposure", Title: "Exposure",
		Why: "Jobs on compute nodes can't reach the cluster's own address of the API. A small TLS proxy gives them four " +
			"paths of it and nothing else; straight to the API server is one part less, where its certificate has the address " +
			"in it; the published guide's ingress is looked at, and its files are exported in a repaired form.",
		Ask: []steps.Question{
			{
				Key: "exposure.mode", Title: "How jobs reach the API", Kind: steps.Pick,
				Default: steps.Fixed(byProxy, "recommended"), Adopt: adoptMode,
				Help: "proxy: four paths, a certificate and a firewall rule of its own. direct: nothing to run, but everything " +
					"that the API server serves is open to the compute nodes, and its certificate must have the address. ingress: " +
					"what the published guide builds; ingress-nginx gets no fixes any more, and tokens cross the cluster in " +
					"plain HTTP.",
				Of: []steps.Choice{
					{Value: byProxy, Title: "proxy: a small TLS proxy in the cluster"},
					{Value: byServer, Title: "direct: the API server itself, no proxy"},
					{Value: byIngress, Title: "ingress: the published guide's chain, as it stands"},
				},
			},
			{
				Key: "exposure.namespace", Title: "Namespace of the endpoint", Kind: steps.Namespace, When: not(byServer),
				Adopt: adoptEndpointNamespace,
				Help: "The proxy and its certificates stand there and nothing else does. In mode ingress: where the published " +
					"guide's chain stands.",
				Default: func(e steps.Env) (any, string) {
					if mode(e) == byIngress {
						return ingressNamespace, "the published guide"
					}
					return "interlink-api", "carrick"
				},
			},
			{
				Key: "exposure.type", Title: "How the proxy's port is opened", Kind: steps.Pick, When: in(byProxy),
				Default: defaultType, Adopt: adoptType,
				Help: "LoadBalancer needs a cloud or MetalLB (an IPAddressPool and an L2Advertisement), and limits sources best. " +
					"NodePort needs nothing, and a port from 30000 on. hostPort takes the port of one node, and a namespace without " +
					"the restricted level. A cluster of kind opens only what extraPortMappings named when it was made.",
				Of: []steps.Choice{
					{Value: asBalancer, Title: "LoadBalancer: an address of its own"},
					{Value: asNodePort, Title: "NodePort: a high port of the nodes"},
					{Value: asHostPort, Title: "hostPort: a port of one node"},
				},
			},
			{
				Key: "exposure.address", Title: "Address that jobs use", Kind: steps.HostName, Default: defaultAddress,
				Adopt: adoptAddress,
				Help: "A name or IP address of the endpoint that compute nodes reach, not only the edge node. It goes into the " +
					"certificate and into every job.",
			},
			{
				Key: "exposure.port", Title: "Port that jobs use", Kind: steps.Port, Default: defaultPort, Adopt: adoptPort,
				Help: "Open it from the compute nodes' network to the address.",
			},
			{
				Key: "exposure.sources", Title: "Networks of the compute nodes", Kind: steps.CIDR, Many: true, Opt: true,
				When: in(byProxy), Adopt: adoptSources,
				Help: "Only these may reach the proxy. Left empty, everybody may knock: the API asks for a token still, but its " +
					"port is open to the world as far as no firewall shuts it.",
			},
			{
				Key: "exposure.image", Title: "Image of the proxy", Kind: steps.Text, NotFromPeer: true, When: in(byProxy),
				Adopt: adoptImage, Check: checkImage,
				Help:    "nginx that runs without root's rights; name a copy of it where nodes pull from a registry of the site.",
				Default: steps.Fixed(proxyImage, "upstream"),
			},
		},
		Facts: exposureFacts(),
		Actions: []steps.Action{{
			Name: "namespace", Title: "Make the namespace of the proxy", On: steps.Local, Needs: []string{"signed-in"},
			When: in(byProxy),
			Doer: action.Manifest{File: "namespace.yaml", Values: action.Values{"level": podLevel}},
		}, {
			Name: "ingress-files", Title: "Write the published guide's files, repaired", On: steps.Local, When: in(byIngress),
			Doer: repairedFiles(),
		}},
		Checks: append(exposureChecks(), chainChecks()...),
	}
}

func mode(e steps.Env) string { return e.Answers.Text("exposure.mode") }

// in is a condition: one of the modes.
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

// podLevel returns the Pod Security level of the namespace: only privileged allows a hostPort.
func podLevel(_ context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("exposure.type") == asHostPort {
		return "privileged", nil
	}
	return "restricted", nil
}

func checkImage(v string) error {
	if v == "" || !plainWord.MatchString(v) {
		return fmt.Errorf("%q is no name of an image", v)
	}
	return nil
}

func exposureFacts() []steps.Fact {
	return []steps.Fact{
		{Name: "endpoint", Title: "where jobs reach the API", On: steps.Local, Shared: true, Learn: learnEndpoint},
		{
			Name: "endpoint-mode", Title: "how the API is exposed", On: steps.Local, Shared: true,
			Learn: func(_ context.Context, e steps.Env) (any, error) { return mode(e), nil },
		},
		{
			Name: "balancer-there", Title: "whether the cluster gives load balancers addresses", On: steps.Local,
			Learn: learnBalancer,
		},
		{
			Name: "balancer-address", Title: "the address of the proxy's load balancer", On: steps.Local,
			Learn: learnBalancerAddress,
		},
		{Name: "node-address", Title: "an address of a node that runs pods", On: steps.Local, Learn: learnNodeAddress},
		{Name: "chain-address", Title: "the address that the ingress is for", On: steps.Local, Learn: learnChainAddress},
	}
}

func learnEndpoint(_ context.Context, e steps.Env) (any, error) {
	address, port := e.Answers.Text("exposure.address"), e.Answers.Int("exposure.port")
	if address == "" || port == 0 {
		return nil, steps.Absent("the address that jobs use is not answered yet (exposure.address)")
	}
	return net.JoinHostPort(address, strconv.Itoa(port)), nil
}

func defaultType(e steps.Env) (any, string) {
	if there, err := e.Own.Text("balancer-there"); err == nil && there != "" {
		return asBalancer, there
	}
	return asNodePort, "no Service of type LoadBalancer has an address here"
}

func defaultAddress(e steps.Env) (any, string) {
	fact, from := "node-address", "a node of the cluster"
	switch {
	case mode(e) == byServer:
		host, _, err := contextServer(e)
		if err != nil {
			return nil, ""
		}
		return host, "the API server, as this kubeconfig has it"
	case mode(e) == byIngress:
		fact, from = "chain-address", "the Ingress"
	case e.Answers.Text("exposure.type") == asBalancer:
		fact, from = "balancer-address", "Service "+proxyName
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
			return 6443, "what kubeadm takes"
		}
		return port, "the API server, as this kubeconfig has it"
	case mode(e) == byProxy && e.Answers.Text("exposure.type") == asNodePort:
		return 30443, "in the range of node ports"
	}
	return 60443, "the published guide"
}

// contextServer returns the address of the API server in this kubeconfig.
func contextServer(e steps.Env) (host string, port int, err error) {
	text, err := e.Own.Text("api-server")
	if err != nil {
		return "", 0, err
	}
	return hostPort(text)
}

// hostPort splits an API server's URL.
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
