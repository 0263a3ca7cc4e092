package interlink

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	chartOfKube = "kubernetes/kubernetes: pkg/apis/core/types.go"
)

func exposureChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "endpoint-namespace", Title: "The endpoint's namespace exists and allows the proxy's pods", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "namespace", When: in(byProxy),
			Why: "The namespace contains the proxy and its certificates. The Pod Security level restricted rejects " +
				"a hostPort.",
			References: []string{page}, Run: endpointNamespace,
		},
		{
			Name: "address-usable", Title: "Compute nodes can use the address", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Every job gets the address unchanged, and an address of the cluster's own network is unreachable " +
				"from outside.",
			References: []string{"interlink-hq/interLink: pkg/virtualkubelet/execute.go", page}, Run: addressUsable,
		},
		{
			Name: "exposure-fits", Title: "The cluster supports the chosen exposure of the port", On: steps.Local,
			Needs: []string{"signed-in"}, When: in(byProxy),
			Why: "Without a load balancer controller a Service of type LoadBalancer never gets an address. A kind " +
				"cluster opens no more ports after its creation.",
			References: []string{page, chartOfKube}, Run: exposureFits,
		},
	}
}

func endpointNamespace(ctx context.Context, e steps.Env) steps.Result {
	n, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", space(e))
	if err != nil {
		return check.Missing(err, "namespace "+space(e), "")
	}
	level, want := n.Labels[check.EnforceLabel], e.Answers.Text("exposure.type")
	if want == asHostPort && (level == "restricted" || level == "baseline") {
		return steps.Failed(
			fmt.Sprintf("namespace %s enforces the Pod Security level %s, which rejects a hostPort", space(e), level),
			e.Kubectl()+" label namespace "+space(e)+" "+check.EnforceLabel+"=privileged --overwrite",
		)
	}
	if level == "" {
		return steps.Passed("namespace %s enforces no Pod Security level", space(e))
	}
	return steps.Passed("namespace %s enforces the Pod Security level %s", space(e), clean.Text(level))
}

func addressUsable(ctx context.Context, e steps.Env) steps.Result {
	a := e.Answers.Text("exposure.address")
	fix := "set exposure.address to a name or address that compute nodes can reach: carrick " + e.LinkFile()
	if strings.HasSuffix(a, ".svc") || strings.Contains(a, ".svc.") || strings.HasSuffix(a, ".local") {
		return steps.Failed(a+" is a name that only pods of the cluster can resolve", fix)
	}
	ip, err := netip.ParseAddr(a)
	switch {
	case a == "localhost" || (err == nil && ip.IsLoopback()):
		if check.OnLoopback(e.Cluster.Server()) {
			return steps.Passed(
				"%s is a loopback address, like the address of this cluster's API server, and works only on this machine", a,
			)
		}
		return steps.Failed(a+" is a loopback address: a job would connect to its own compute node", fix)
	case err != nil:
		return steps.Passed("%s is a host name; check endpoint-name resolves it", a)
	case ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast():
		return steps.Failed(a+" is not a routable unicast address", fix)
	}
	own, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, "default", "kubernetes")
	if err != nil && !apierrors.IsNotFound(err) {
		return steps.Errored(err)
	}
	if err == nil && own.Spec.ClusterIP == a {
		return steps.Failed(
			a+" is the API's Service inside the cluster (default/kubernetes), which compute nodes cannot reach", fix,
		)
	}
	return steps.Passed("%s is not the cluster-internal address of the API", a)
}

func exposureFits(ctx context.Context, e steps.Env) steps.Result {
	kind, port := e.Answers.Text("exposure.type"), e.Answers.Int("exposure.port")
	nodes, err := realNodes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, n := range nodes {
		if strings.HasPrefix(n.Spec.ProviderID, "kind://") && kind != asBalancer {
			return steps.Warned(
				fmt.Sprintf(
					"the nodes are kind containers (%s): port %d of this machine reaches them only if extraPortMappings listed this "+
						"port when the cluster was created",
					n.Name, port,
				),
				fmt.Sprintf(
					"set in the kind configuration: nodes: [{role: control-plane, extraPortMappings: [{containerPort: %d, hostPort: "+
						"%d}]}], and recreate the cluster; or set exposure.address to the node's address if the compute nodes share "+
						"its network",
					port, port,
				),
			)
		}
	}
	switch kind {
	case asNodePort:
		if port < 30000 || port > 32767 {
			return steps.Failed(
				fmt.Sprintf(
					"port %d is outside the range of node ports, 30000-32767 by default", port,
				),
				"set exposure.port to a port from 30000 to 32767, or exposure.type to LoadBalancer or hostPort: carrick "+
					e.LinkFile(),
			)
		}
		if r := pinnedNodeAccepts(e, nodes); r.Status != steps.Pass {
			return r
		}
		return steps.Passed("port %d of each node reaches the proxy", port)
	case asHostPort:
		return hostPortFits(e, nodes, port)
	}
	seen, err := e.Own.Text("balancer-there")
	if _, absent := err.(*steps.AbsentError); absent {
		return steps.Warned(
			"no Service of type LoadBalancer has an address, so the cluster probably assigns no addresses to load balancers",
			"on bare metal install MetalLB with an IPAddressPool and an L2Advertisement, in a network where it can announce "+
				"addresses; or set exposure.type to NodePort: carrick "+e.LinkFile(),
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	return steps.Passed("%s", seen)
}

// pinnedNodeAccepts verifies that the node with the address exposure.address accepts pods. carrick pins the proxy's pod
// to this node.
func pinnedNodeAccepts(e steps.Env, nodes []*corev1.Node) steps.Result {
	for _, n := range nodes {
		if n.Name != nodeOf(nodes, e.Answers.Text("exposure.address")) {
			continue
		}
		if why := whyNoPods(n); why != "" {
			return steps.Failed(
				fmt.Sprintf(
					"%s is the address of node %s, to which carrick would pin the proxy. That node %s, so the pod would stay Pending",
					e.Answers.Text("exposure.address"), n.Name, clean.Text(why),
				),
				"set exposure.address to an address of a node that accepts pods: "+e.Kubectl()+" get nodes -o wide",
			)
		}
	}
	return steps.Passed("the node accepts pods")
}

// hostPortFits verifies that the pod with the hostPort can run on the node with the address exposure.address.
func hostPortFits(e steps.Env, nodes []*corev1.Node, port int) steps.Result {
	if n := nodeOf(nodes, e.Answers.Text("exposure.address")); n != "" {
		if r := pinnedNodeAccepts(e, nodes); r.Status != steps.Pass {
			return r
		}
		return steps.Passed("port %d of node %s, to which the proxy is pinned", port, n)
	}
	return steps.Warned(
		fmt.Sprintf(
			"%s is not the address of a node, so carrick does not pin the proxy's pod to a node. Port %d is open only on the "+
				"node where the pod runs",
			e.Answers.Text("exposure.address"), port,
		),
		"set exposure.address to an address of the node that should run the proxy: "+e.Kubectl()+" get nodes -o wide",
	)
}

// nodeOf returns the name of the node with the given address, or "" if no node has it.
func nodeOf(nodes []*corev1.Node, address string) string {
	for _, n := range nodes {
		for _, a := range addressesOfNode(n) {
			if a == address {
				return n.Name
			}
		}
	}
	return ""
}
