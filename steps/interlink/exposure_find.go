package interlink

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// splitURL is the host and port of an https URL.
func splitURL(text string) (host, port string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", "", errors.New("the API server's address is no URL")
	}
	if port = u.Port(); port == "" {
		port = "443"
	}
	return u.Hostname(), port, nil
}

// learnBalancer is what shows that Services of type LoadBalancer get addresses
// here.
func learnBalancer(ctx context.Context, e steps.Env) (any, error) {
	all, err := check.List[corev1.Service](ctx, e.Cluster, check.Services, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if a := balancerAddress(s); a != "" {
			return "Service " + s.Namespace + "/" + s.Name + " has the address " + cluster.Clean(a), nil
		}
	}
	return nil, steps.Absent("no Service of type LoadBalancer has an address")
}

// balancerAddress is what a load balancer gave a Service; "": nothing yet.
func balancerAddress(s *corev1.Service) string {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return ""
	}
	for _, at := range s.Status.LoadBalancer.Ingress {
		if at.IP != "" {
			return at.IP
		}
		if at.Hostname != "" {
			return at.Hostname
		}
	}
	return ""
}

func learnBalancerAddress(ctx context.Context, e steps.Env) (any, error) {
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, space(e), proxyName)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("there is no Service %s in %s yet", proxyName, space(e))
	}
	if err != nil {
		return nil, err
	}
	if a := balancerAddress(s); a != "" {
		return a, nil
	}
	return nil, steps.Absent("Service %s has no address yet", proxyName)
}

// realNodes are the nodes that run pods by themselves.
func realNodes(ctx context.Context, e steps.Env) ([]*corev1.Node, error) {
	all, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(n *corev1.Node) bool { return n.Labels[nodeLabel] != "" || n.Labels["type"] == "virtual-kubelet" }), nil
}

// whyNoPods says why a node takes no pod that tolerates nothing; "": it does.
func whyNoPods(n *corev1.Node) string {
	if n.Spec.Unschedulable {
		return "is cordoned"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "is not Ready"
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			return "has the taint " + t.Key
		}
	}
	return ""
}

// addressesOf are the addresses of a node, those from outside first.
func addressesOf(n *corev1.Node) []string {
	var out []string
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP, corev1.NodeExternalDNS, corev1.NodeHostName} {
		for _, a := range n.Status.Addresses {
			if a.Type == kind && a.Address != "" {
				out = append(out, a.Address)
			}
		}
	}
	return out
}

func learnNodeAddress(ctx context.Context, e steps.Env) (any, error) {
	nodes, err := realNodes(ctx, e)
	if err != nil {
		return nil, err
	}
	here := check.OnLoopback(e.Cluster.Server())                                                                 // the whole cluster is on this machine
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(whyNoPods(a), whyNoPods(b)) }) // those that take any come first
	for _, n := range nodes {
		for _, a := range addressesOf(n) {
			if ip, err := netip.ParseAddr(a); err == nil && (here || !ip.IsLoopback()) {
				return a, nil
			}
		}
	}
	return nil, steps.Absent("no node of the cluster has an address")
}

// adoptedConfig is what a set-up that stands shows of the endpoint: what the virtual
// kubelet tells jobs.
func adoptedConfig(e steps.Env) (address, port string, err error) {
	v, err := e.Own.Value("vk-config")
	if err != nil {
		var absent *steps.AbsentError
		if errors.As(err, &absent) {
			return "", "", nil
		}
		return "", "", err
	}
	config, _ := v.(map[string]any)
	address, _ = config["KubernetesApiAddr"].(string)
	port, _ = config["KubernetesApiPort"].(string)
	return strings.TrimSpace(address), strings.TrimSpace(port), nil
}

const inConfig = "the virtual kubelet's configuration"

func adoptAddress(_ context.Context, e steps.Env) (any, string, error) {
	address, _, err := adoptedConfig(e)
	if err != nil || address == "" {
		return nil, "", err
	}
	return address, inConfig, nil
}

func adoptPort(_ context.Context, e steps.Env) (any, string, error) {
	_, port, err := adoptedConfig(e)
	if err != nil || port == "" {
		return nil, "", err
	}
	return port, inConfig, nil
}

// theProxy is the Service of a proxy that carrick made, wherever it stands.
func theProxy(ctx context.Context, e steps.Env) (*corev1.Service, error) {
	all, err := check.List[corev1.Service](ctx, e.Cluster, check.Services, "", cluster.Selector{Fields: "metadata.name=" + proxyName})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

func adoptMode(ctx context.Context, e steps.Env) (any, string, error) {
	s, err := theProxy(ctx, e)
	if err != nil {
		return nil, "", err
	}
	if s != nil {
		return byProxy, "Service " + s.Namespace + "/" + s.Name, nil
	}
	c, err := anyChain(ctx, e)
	if err != nil {
		return nil, "", err
	}
	if c != nil {
		return byIngress, "Ingress " + c.Namespace + "/" + c.Name, nil
	}
	address, port, err := adoptedConfig(e)
	if err != nil || address == "" {
		return nil, "", err
	}
	if host, p, err := splitURL(e.Cluster.Server()); err == nil && net.JoinHostPort(host, p) == net.JoinHostPort(address, port) {
		return byServer, inConfig + ": it is the API server's own address", nil
	}
	return nil, "", nil
}

func adoptEndpointNamespace(ctx context.Context, e steps.Env) (any, string, error) {
	s, err := theProxy(ctx, e)
	if err != nil {
		return nil, "", err
	}
	if s != nil {
		return s.Namespace, "Service " + proxyName, nil
	}
	c, err := anyChain(ctx, e)
	if err != nil || c == nil {
		return nil, "", err
	}
	return c.Namespace, "Ingress " + c.Name, nil
}

func adoptType(ctx context.Context, e steps.Env) (any, string, error) {
	s, err := theProxy(ctx, e)
	if err != nil || s == nil {
		return nil, "", err
	}
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		return asBalancer, "Service " + proxyName, nil
	case corev1.ServiceTypeNodePort:
		return asNodePort, "Service " + proxyName, nil
	}
	return asHostPort, "Service " + proxyName + " has no port outside", nil
}

func adoptSources(ctx context.Context, e steps.Env) (any, string, error) {
	s, err := theProxy(ctx, e)
	if err != nil || s == nil {
		return nil, "", err
	}
	if len(s.Spec.LoadBalancerSourceRanges) > 0 {
		return s.Spec.LoadBalancerSourceRanges, "Service " + proxyName, nil
	}
	p, err := check.Get[networkingv1.NetworkPolicy](ctx, e.Cluster, check.NetworkPolicies, s.Namespace, proxyName)
	if apierrors.IsNotFound(err) {
		return steps.LeftEmpty, "neither Service nor NetworkPolicy names a network", nil
	}
	if err != nil {
		return nil, "", err
	}
	return fencedTo(p), "NetworkPolicy " + proxyName, nil
}

// fencedTo are the networks that a policy lets in.
func fencedTo(p *networkingv1.NetworkPolicy) []string {
	var out []string
	for _, rule := range p.Spec.Ingress {
		for _, from := range rule.From {
			if from.IPBlock != nil {
				out = append(out, from.IPBlock.CIDR)
			}
		}
	}
	return out
}

func adoptImage(ctx context.Context, e steps.Env) (any, string, error) {
	s, err := theProxy(ctx, e)
	if err != nil || s == nil {
		return nil, "", err
	}
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, s.Namespace, proxyName)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil || len(d.Spec.Template.Spec.Containers) == 0 {
		return nil, "", err
	}
	return d.Spec.Template.Spec.Containers[0].Image, "Deployment " + proxyName, nil
}
