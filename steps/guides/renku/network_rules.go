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

// allowsPort reports whether the ports of a rule include port. A name with the prefix "dns" matches
// ports 53 and 5353, because DNS servers name their ports dns and dns-tcp. Other names match no
// port.
func allowsPort(ports []networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port int32) bool {
	return check.AllowsPort(ports, protocol, port, func(name string) bool {
		return strings.HasPrefix(name, "dns") && (port == 53 || port == 5353)
	})
}

// includesEveryone reports whether from includes all pods of the cluster or all addresses. It
// ignores the except lists of IP blocks.
func includesEveryone(from []networkingv1.NetworkPolicyPeer) bool {
	return check.AnyPod(from) || slices.ContainsFunc(from, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock != nil && strings.HasSuffix(p.IPBlock.CIDR, "/0")
	})
}

// allowsOtherPorts reports whether a rule allows ports other than sessionPort. A rule without ports
// allows all ports.
func allowsOtherPorts(ports []networkingv1.NetworkPolicyPort) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return p.Port == nil || p.Port.IntValue() != sessionPort
	})
}

// throughPolicies splits addrs into allowed and blocked addresses. Policies are additive, so an
// address is allowed if any policy allows it.
func throughPolicies(policies []*networkingv1.NetworkPolicy, addrs []netip.Addr) (open, closed []netip.Addr) {
	for _, a := range addrs {
		if slices.ContainsFunc(policies, func(p *networkingv1.NetworkPolicy) bool {
			return slices.ContainsFunc(
				p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return check.AllowsAddress(r.To, a) },
			)
		}) {
			open = append(open, a)
		} else {
			closed = append(closed, a)
		}
	}
	return open, closed
}
