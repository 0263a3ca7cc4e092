package interlink

import (
	"context"
	"net/netip"

	"carrick/steps"
	"carrick/steps/action"
)

func proxy() steps.Step {
	return steps.Step{
		Name: "proxy", Title: "Proxy",
		Map: steps.MapRow{Local: "proxy"},
		Why: "An nginx forwards four API paths, answers 404 to all other paths and has no credentials: each request " +
			"carries its own token. It serves a renewed certificate from the next handshake on, and restarts only when its " +
			"configuration or the cluster's CA changes.",
		When: in(byProxy),
		Actions: []steps.Action{
			{
				Name: "proxy", Title: "Run the proxy", On: steps.Local, Needs: []string{"endpoint-namespace"},
				Doer: action.Manifest{File: "proxy.yaml", Values: action.Values{
					"conf": proxyText, "cause": proxyCause, "image": answerOf("exposure.image"),
					"secret":    func(_ context.Context, e steps.Env) (any, error) { return proxySecret(e), nil },
					"host-port": hostPortOf, "node": nodeSelector, "strategy": strategy,
				}},
			},
			{
				Name: "service", Title: "Open the proxy's port", On: steps.Local, Needs: []string{"endpoint-namespace"},
				Doer: action.Manifest{
					File: "service.yaml",
					Values: action.Values{
						"type": serviceType, "port": servicePort, "node-port": nodePort, "sources": balancerSources,
						"address": balancerAsks, "traffic": traffic,
					},
				},
			},
			{
				Name: "fence", Title: "Allow only the compute nodes' networks", On: steps.Local,
				Needs: []string{"endpoint-namespace"},
				When:  func(e steps.Env) bool { return len(e.Answers.List("exposure.sources")) > 0 },
				Doer:  action.Manifest{File: "fence.yaml", Values: action.Values{"from": fenceFrom}},
			},
		},
		Checks: proxyChecks(),
	}
}

func answerOf(key string) func(context.Context, steps.Env) (any, error) {
	return func(_ context.Context, e steps.Env) (any, error) { return e.Answers.Text(key), nil }
}

// shippedConf returns proxyConf for the link's answers: with an IPv6 address, nginx also listens on IPv6.
func shippedConf(e steps.Env) nginxConf {
	c := proxyConf
	ip, err := netip.ParseAddr(e.Answers.Text("exposure.address"))
	c.ipv6 = err == nil && ip.Is6()
	return c
}

func proxyText(_ context.Context, e steps.Env) (any, error) { return shippedConf(e).encode() }

func exposed(e steps.Env) string { return e.Answers.Text("exposure.type") }

func hostPortOf(_ context.Context, e steps.Env) (any, error) {
	if exposed(e) != asHostPort {
		return nil, nil
	}
	return e.Answers.Int("exposure.port"), nil
}

// nodeSelector returns the node selector of the proxy's pod. Without a load balancer it pins the pod to the node whose
// address jobs use. If the pod ran on another node, connections to this address would fail, or the pod would not see
// the client's address.
func nodeSelector(ctx context.Context, e steps.Env) (any, error) {
	out := map[string]any{"kubernetes.io/os": "linux"}
	if exposed(e) == asBalancer {
		return out, nil
	}
	nodes, err := realNodes(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if n.Name == nodeOf(nodes, e.Answers.Text("exposure.address")) && n.Labels["kubernetes.io/hostname"] != "" {
			out["kubernetes.io/hostname"] = n.Labels["kubernetes.io/hostname"]
		}
	}
	return out, nil
}

// strategy returns the update strategy of the Deployment: Recreate for a hostPort, because two pods cannot use the same
// port of a node.
func strategy(_ context.Context, e steps.Env) (any, error) {
	if exposed(e) == asHostPort {
		return "Recreate", nil
	}
	return "RollingUpdate", nil
}

func serviceType(_ context.Context, e steps.Env) (any, error) {
	if exposed(e) == asHostPort {
		return "ClusterIP", nil
	}
	return exposed(e), nil
}

func servicePort(_ context.Context, e steps.Env) (any, error) {
	if exposed(e) == asNodePort {
		return proxyListens, nil
	}
	return e.Answers.Int("exposure.port"), nil
}

func nodePort(_ context.Context, e steps.Env) (any, error) {
	if exposed(e) != asNodePort {
		return nil, nil
	}
	return e.Answers.Int("exposure.port"), nil
}

func balancerSources(_ context.Context, e steps.Env) (any, error) {
	if all := e.Answers.List("exposure.sources"); exposed(e) == asBalancer && len(all) > 0 {
		return all, nil
	}
	return nil, nil
}

// balancerAsks returns the loadBalancerIP of the Service: exposure.address if it is an IP address, and nil otherwise.
func balancerAsks(_ context.Context, e steps.Env) (any, error) {
	if a := e.Answers.Text("exposure.address"); exposed(e) == asBalancer && isAddress(a) {
		return a, nil
	}
	return nil, nil
}

// traffic returns the externalTrafficPolicy of the Service. Local preserves the client's address, which the
// NetworkPolicy for exposure.sources requires.
func traffic(_ context.Context, e steps.Env) (any, error) {
	switch {
	case exposed(e) == asHostPort:
		return nil, nil
	case len(e.Answers.List("exposure.sources")) > 0:
		return "Local", nil
	}
	return "Cluster", nil
}

func fenceFrom(_ context.Context, e steps.Env) (any, error) {
	out := []any{}
	for _, c := range e.Answers.List("exposure.sources") {
		out = append(out, map[string]any{"ipBlock": map[string]any{"cidr": c}})
	}
	return out, nil
}
