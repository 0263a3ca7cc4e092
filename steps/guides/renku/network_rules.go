package renku

import (
	"net/netip"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func reachesDNS(e steps.Env, peers []networkingv1.NetworkPolicyPeer) bool {
	space := labels.Set{corev1.LabelMetadataName: e.Answers.Text("network.dns-namespace")}
	pod := labels.Set{}
	for k, v := range dnsLabels(e) {
		pod[k] = v.(string)
	}
	for _, p := range peers {
		if p.IPBlock == nil && selects(p.NamespaceSelector, space) && (p.PodSelector == nil || selects(p.PodSelector, pod)) {
			return true
		}
	}
	return false
}

func selects(s *metav1.LabelSelector, set labels.Set) bool {
	if s == nil {
		return false
	}
	sel, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && sel.Matches(set)
}

// allowsPort tells whether ports let that one through; none at all: every one.
// A port without a protocol is one of TCP. A port by name is the pod's own word
// for it: DNS servers call theirs dns and dns-tcp.
func allowsPort(ports []networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port int) bool {
	for _, p := range ports {
		of := corev1.ProtocolTCP
		if p.Protocol != nil {
			of = *p.Protocol
		}
		switch {
		case of != protocol:
		case p.Port == nil, p.Port.IntValue() == port:
			return true
		case p.Port.Type == intstr.String && strings.HasPrefix(p.Port.StrVal, "dns") && (port == 53 || port == 5353):
			return true
		case p.EndPort != nil && p.Port.IntValue() <= port && port <= int(*p.EndPort):
			return true
		}
	}
	return len(ports) == 0
}

// reachesAddr tells whether an egress rule lets that address through. No peers
// at all: everything.
func reachesAddr(peers []networkingv1.NetworkPolicyPeer, addr netip.Addr) bool {
	for _, p := range peers {
		if p.IPBlock == nil {
			continue
		}
		block, err := netip.ParsePrefix(p.IPBlock.CIDR)
		if err != nil || !block.Contains(addr) {
			continue
		}
		if !slices.ContainsFunc(p.IPBlock.Except, func(s string) bool {
			hole, err := netip.ParsePrefix(s)
			return err == nil && hole.Contains(addr)
		}) {
			return true
		}
	}
	return len(peers) == 0
}

// everybody tells whether peers are all pods of the cluster, or all addresses, whatever is excepted from them.
func everybody(from []networkingv1.NetworkPolicyPeer) bool {
	return check.AnyPod(from) || slices.ContainsFunc(from, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock != nil && strings.HasSuffix(p.IPBlock.CIDR, "/0")
	})
}

// beyond tells whether ports are more than the one for signed-in users.
func beyond(ports []networkingv1.NetworkPolicyPort) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return p.Port == nil || p.Port.IntValue() != sessionPort
	})
}

// throughPolicies parts addresses by whether egress policies let them through.
// Policies add up.
func throughPolicies(policies []*networkingv1.NetworkPolicy, addrs []netip.Addr) (open, closed []netip.Addr) {
	for _, a := range addrs {
		if slices.ContainsFunc(policies, func(p *networkingv1.NetworkPolicy) bool {
			return slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return reachesAddr(r.To, a) })
		}) {
			open = append(open, a)
		} else {
			closed = append(closed, a)
		}
	}
	return open, closed
}
