package liqo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carrick/steps"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Time limits within which Liqo must report the endpoint of a gateway. balancerWithin applies to Services of type
// LoadBalancer, because cloud load balancers take longer.
const (
	endpointWithin = 2 * time.Minute
	balancerWithin = 5 * time.Minute
)

func serverEndpoint(ctx context.Context, e steps.Env) steps.Result {
	g, err := sideGateway(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	at, port := gatewayAddresses(g), intAt(g, "status", "endpoint", "port")
	if len(at) > 0 && port != 0 {
		return steps.Passed("%s, port %d, UDP", check.OrNone(at), port)
	}
	since := g.GetCreationTimestamp().Time
	why, fix, err := withoutEndpoint(ctx, e, g)
	if err != nil {
		return steps.Errored(err)
	}
	r := steps.Waits(since, "GatewayServer %s has no endpoint in its status: %s", placeOf(g), why).Or(fix)
	if text(g, "spec", "endpoint", "serviceType") == "LoadBalancer" {
		return r
	}
	return within(endpointWithin, since, time.Now(), r)
}

// withoutEndpoint explains why a gateway's Service has no endpoint yet. fix contains commands to investigate it.
func withoutEndpoint(ctx context.Context, e steps.Env, g *unstructured.Unstructured) (why, fix string, err error) {
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, g.GetNamespace(), gatewayObjectName(g))
	if apierrors.IsNotFound(err) {
		return "Service " + gatewayObjectName(g) +
				" does not exist, perhaps because its node port is in use or out of range", inTenant(e) +
				"get events; " + controllerLog(e), nil
	}
	if err != nil {
		return "", "", err
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) == 0 {
		return "its load balancer is pending. Not every cluster provides load balancers, and not all of them support UDP",
			inTenant(e) + "describe service " + steps.Quoted(s.Name) + "    # or set network.service-type to NodePort", nil
	}
	return "no gateway pod is active, or its node is not Ready or has no address", inTenant(e) +
		"get pods -o wide; " + controllerLog(e), nil
}

// listening describes the other side's GatewayServer.
type listening struct {
	kind      string   // type of its Service
	addresses []string // addresses on which it listens
	port      int      // port that the other gateway connects to
	inner     int      // port on which the gateway pod listens
}

func peerListens(e steps.Env) (listening, error) {
	m, err := e.Peer.Map("gateway-server")
	if err != nil {
		return listening{}, err
	}
	l := listening{kind: fmt.Sprint(m["service-type"]), addresses: steps.ListOf(m["addresses"])}
	l.port, l.inner = factInt(m["endpoint-port"]), factInt(m["port"])
	if len(l.addresses) == 0 || l.port == 0 {
		return l, steps.Absent(noEndpoint)
	}
	return l, nil
}

func factInt(v any) int {
	switch v := v.(type) {
	case int:
		return v
	case int64:
		return int(v)
	case float64:
		return int(v)
	}
	return 0
}

// gatewayTarget is the address and port that this side's gateway connects to. They come from the GatewayClient if it
// exists, and otherwise from the answers.
type gatewayTarget struct {
	host string
	port int
	made bool // read from a GatewayClient
}

func gatewayTargetOf(ctx context.Context, e steps.Env) (gatewayTarget, error) {
	g, err := sideGateway(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		t := gatewayTarget{host: e.Answers.Text("network.address"), port: e.Answers.Int("network.client-port")}
		if t.host == "" || t.port == 0 {
			return t, steps.Absent(noEndpoint)
		}
		return t, nil
	}
	if err != nil {
		return gatewayTarget{}, err
	}
	t := gatewayTarget{port: clientPort(g), made: true}
	if at := stringsAt(g, "spec", "endpoint", "addresses"); len(at) > 0 {
		t.host = at[0]
	}
	return t, nil
}

// clientPort returns the port of a GatewayClient. Newer Liqo releases can specify the port in a list.
func clientPort(g *unstructured.Unstructured) int {
	if p := intAt(g, "spec", "endpoint", "port"); p != 0 {
		return p
	}
	many, _, _ := unstructured.NestedSlice(g.Object, "spec", "endpoint", "ports")
	if len(many) == 0 {
		return 0
	}
	return factInt(many[0])
}

func clientEndpoint(ctx context.Context, e steps.Env) steps.Result {
	there, err := peerListens(e)
	if err != nil {
		return steps.Errored(err)
	}
	g, err := sideGateway(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	t, err := gatewayTargetOf(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	name := "GatewayClient " + placeOf(g)
	asked := e.Answers.Int("network.client-port")
	switch {
	case t.host == "":
		return steps.Failed(name+" has no address, so Liqo cannot create a gateway from it", "")
	case !leadsThere(e, there, t.host):
		return steps.Failed(
			fmt.Sprintf(
				"%s connects to %s, but the gateway of the %s listens on %s", name, t.host, e.PeerName(),
				check.OrNone(there.addresses),
			),
			e.ApplyStep("tunnel")+"    # or, if NAT translates the address, set network.address to "+steps.Quoted(t.host),
		)
	case t.port != there.port && t.port != asked && there.kind == "NodePort" && t.port == there.inner:
		return steps.Failed(
			fmt.Sprintf(
				"%s connects to port %d, the gateway's port inside the cluster. Its node port is %d", name, t.port,
				there.port,
			),
			"",
		)
	case t.port != there.port && t.port != asked:
		return steps.Failed(
			fmt.Sprintf(
				"%s connects to port %d, but the gateway of the %s listens on port %d", name, t.port, e.PeerName(), there.port,
			),
			e.ApplyStep("tunnel")+"    # or, if NAT translates the port, set network.client-port to "+
				fmt.Sprint(t.port),
		)
	case text(g, "spec", "endpoint", "protocol") == "TCP":
		return steps.Warned(
			name+" has protocol TCP, but the tunnel uses UDP. The default template ignores the protocol",
			e.ApplyStep("tunnel"),
		)
	}
	return steps.Passed("%s port %d%s", t.host, t.port, otherListener(there, t))
}

// leadsThere reports whether host is an address of the other side's gateway. Valid addresses are those that the gateway
// reports and the address in the answers. If the gateway's Service is a NodePort, the addresses of all nodes are also
// valid.
func leadsThere(e steps.Env, there listening, host string) bool {
	if slices.Contains(there.addresses, host) || host == e.Answers.Text("network.address") {
		return true
	}
	nodes, err := e.Peer.List("node-addresses")
	return there.kind == "NodePort" && err == nil && slices.Contains(nodes, host)
}

// otherListener returns a note with the endpoint that the GatewayServer reports, or "" if t is that endpoint. For
// example, t can be the address of another node.
func otherListener(there listening, t gatewayTarget) string {
	if !slices.Contains(there.addresses, t.host) || t.port != there.port {
		return fmt.Sprintf("; the GatewayServer reports %s port %d", check.OrNone(there.addresses), there.port)
	}
	return ""
}
