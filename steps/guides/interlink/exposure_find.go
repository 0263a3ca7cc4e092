package interlink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// splitURL returns the host and port of text, an https URL. The default port is 443.
func splitURL(text string) (host, port string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "", "", errors.New("the API server's address is not a URL")
	}
	if port = u.Port(); port == "" {
		port = "443"
	}
	return u.Hostname(), port, nil
}

// learnBalancer returns a description of a Service to which a load balancer has assigned an address. Such a Service
// shows that load balancers work in this cluster.
func learnBalancer(ctx context.Context, e steps.Env) (any, error) {
	all, err := check.List[corev1.Service](ctx, e.Cluster, check.Services, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if a := balancerAddress(s); a != "" {
			return "Service " + s.Namespace + "/" + s.Name + " has the address " + clean.Text(a), nil
		}
	}
	return nil, steps.Absent("no Service of type LoadBalancer has an address")
}

// balancerAddress returns the address that a load balancer has assigned to s, or "" if it has assigned none yet.
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
		return nil, steps.Absent("Service %s does not exist in %s yet", proxyName, space(e))
	}
	if err != nil {
		return nil, err
	}
	if a := balancerAddress(s); a != "" {
		return a, nil
	}
	return nil, steps.Absent("Service %s has no address yet", proxyName)
}

// realNodes returns the nodes that are not virtual.
func realNodes(ctx context.Context, e steps.Env) ([]*corev1.Node, error) {
	all, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(
		slices.Clone(all),
		func(n *corev1.Node) bool { return n.Labels[nodeLabel] != "" || n.Labels["type"] == "virtual-kubelet" },
	), nil
}

// whyNoPods returns why n does not accept a pod without tolerations, or "" if n accepts it.
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

// addressesOfNode returns the addresses of n. External addresses come first.
func addressesOfNode(n *corev1.Node) []string {
	var out []string
	for _, kind := range []corev1.NodeAddressType{
		corev1.NodeExternalIP, corev1.NodeInternalIP, corev1.NodeExternalDNS, corev1.NodeHostName,
	} {
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
	// If the API server's address is a loopback address, the whole cluster runs on this machine.
	here := check.OnLoopback(e.Cluster.Server())
	// Nodes that accept pods come first.
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(whyNoPods(a), whyNoPods(b)) })
	for _, n := range nodes {
		for _, a := range addressesOfNode(n) {
			if ip, err := netip.ParseAddr(a); err == nil && (here || !ip.IsLoopback()) {
				return a, nil
			}
		}
	}
	return nil, steps.Absent("no node of the cluster has an address")
}

// candidates groups the Services of proxies, or the published guide's Ingresses, by trust. Trust matters because the
// adopted object decides where jobs send their tokens, and any user with access to a namespace can create such an
// object there, even with carrick's labels.
type candidates struct {
	mine   []*unstructured.Unstructured // created by this link according to the inventory
	here   []*unstructured.Unstructured // in the endpoint's namespace
	others []*unstructured.Unstructured // created by another link according to that link's inventory
	unsure []*unstructured.Unstructured // all other objects
}

func sift(ctx context.Context, e steps.Env, all []*unstructured.Unstructured, here ...string) (candidates, error) {
	var c candidates
	for _, o := range all {
		by, err := inventory.Creator(ctx, e, o)
		if err != nil {
			return c, err
		}
		in := &c.unsure
		switch {
		case by == e.Link:
			in = &c.mine
		case slices.Contains(here, o.GetNamespace()):
			in = &c.here
		case by != "":
			in = &c.others
		}
		*in = append(*in, o)
	}
	return c, nil
}

// best returns the candidates of the most trusted group that is not empty. It never returns unsure candidates. If it
// returns several, the user must choose one.
func (c candidates) best() []*unstructured.Unstructured {
	for _, some := range [][]*unstructured.Unstructured{c.mine, c.here, c.others} {
		if len(some) > 0 {
			return some
		}
	}
	return nil
}

func namesOf(all []*unstructured.Unstructured) string {
	var out []string
	for _, o := range all {
		out = append(out, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(out)
	return clean.Text(check.Some(out))
}

// whichNamespace returns the error that asks the user to choose a namespace, because no candidate or several candidates
// are trusted.
func whichNamespace(said string, all []*unstructured.Unstructured) error {
	const how = "adopt again with the namespace where jobs reach the API: --force --answer exposure.namespace="
	return fmt.Errorf("%s %s: %s%s", namesOf(all), said, how, cmp.Or(onlyIn(all), "NAMESPACE"))
}

const notCarricks = "may belong to another user, because carrick did not create it"

// theProxies returns the Services in all namespaces that have the name of carrick's proxy.
func theProxies(ctx context.Context, e steps.Env) (candidates, error) {
	all, err := e.Cluster.List(ctx, check.Services, "", cluster.Selector{Fields: "metadata.name=" + proxyName})
	if err != nil {
		return candidates{}, err
	}
	return sift(ctx, e, all, space(e))
}

// theChains returns the Ingresses in all namespaces that forward to the API as in the published guide.
func theChains(ctx context.Context, e steps.Env) (candidates, error) {
	all, err := e.Cluster.List(ctx, check.Ingresses, "", cluster.Selector{})
	if err != nil {
		return candidates{}, err
	}
	var lead []*unstructured.Unstructured
	for _, o := range all {
		if i, err := check.As[networkingv1.Ingress](o); err == nil && leadsToAPI(i) {
			lead = append(lead, o)
		}
	}
	return sift(ctx, e, lead, space(e), ingressNamespace)
}
