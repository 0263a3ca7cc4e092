package check

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"carrick/cluster"
)

// OpenedBy returns the names of the NetworkPolicies of a namespace that allow ingress from everywhere, to all ports, to pods
// with these labels, other than the policy called except. NetworkPolicies add up: one that allows everything undoes all others.
//
// Source: kubernetes/website, content/en/docs/concepts/services-networking/network-policies.md.
func OpenedBy(ctx context.Context, c *cluster.Cluster, namespace string, pod map[string]string, except string) ([]string, error) {
	all, err := List[networkingv1.NetworkPolicy](ctx, c, NetworkPolicies, namespace, cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range all {
		selects, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil {
			return nil, err
		}
		about := len(p.Spec.PolicyTypes) == 0 || slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
		if about && p.Name != except && selects.Matches(labels.Set(pod)) && slices.ContainsFunc(p.Spec.Ingress, fromEverywhere) {
			out = append(out, cluster.CleanName(p.Name))
		}
	}
	return out, nil
}

// fromEverywhere reports whether a rule allows everyone to all ports. One of some ports, as for metrics, says nothing of others.
func fromEverywhere(r networkingv1.NetworkPolicyIngressRule) bool {
	if len(r.Ports) > 0 {
		return false
	}
	return AnyAddress(r.From) || AnyPod(r.From)
}

// AnyAddress reports whether peers include all IPv4 or all IPv6 addresses. No peers are all of them.
func AnyAddress(peers []networkingv1.NetworkPolicyPeer) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock != nil && len(p.IPBlock.Except) == 0 && strings.HasSuffix(p.IPBlock.CIDR, "/0")
	})
}

// AnyPod reports whether peers include all pods of the cluster. No peers are all of them.
func AnyPod(peers []networkingv1.NetworkPolicyPeer) bool {
	all := func(s *metav1.LabelSelector) bool { return len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.NamespaceSelector != nil && all(p.NamespaceSelector) && (p.PodSelector == nil || all(p.PodSelector))
	})
}

// EgressDeniedBy returns the names of the NetworkPolicies of a namespace that restrict the egress of pods with these
// labels, where none of them allows TCP connections to one of the addresses on one of the ports. It returns nothing
// where egress is allowed, or may be: the addresses of pods that a namespaceSelector selects are not known. Without
// addresses every ipBlock counts as one that contains them.
func EgressDeniedBy(
	ctx context.Context, c *cluster.Cluster, namespace string, pod map[string]string, addresses []string, ports ...int32,
) ([]string, error) {
	all, err := List[networkingv1.NetworkPolicy](ctx, c, NetworkPolicies, namespace, cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range all {
		selects, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil {
			return nil, err
		}
		about := len(p.Spec.PolicyTypes) == 0 && len(p.Spec.Egress) > 0 ||
			slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		if !about || !selects.Matches(labels.Set(pod)) {
			continue
		}
		for _, r := range p.Spec.Egress {
			selects := slices.ContainsFunc(r.To, func(p networkingv1.NetworkPolicyPeer) bool {
				return p.NamespaceSelector != nil
			})
			if hasPort(r.Ports, ports) && (selects || AnyAddress(r.To) || hasAddress(r.To, addresses)) {
				return nil, nil
			}
		}
		out = append(out, cluster.CleanName(p.Name))
	}
	return out, nil
}

// hasPort reports whether a rule is about one of some TCP ports. A named port counts: only the receiving pod knows it.
func hasPort(of []networkingv1.NetworkPolicyPort, ports []int32) bool {
	return len(of) == 0 || slices.ContainsFunc(of, func(r networkingv1.NetworkPolicyPort) bool {
		if r.Protocol != nil && *r.Protocol != corev1.ProtocolTCP {
			return false
		}
		if r.Port == nil || r.Port.Type == intstr.String {
			return true
		}
		last := r.Port.IntVal
		if r.EndPort != nil {
			last = *r.EndPort
		}
		return slices.ContainsFunc(ports, func(p int32) bool { return r.Port.IntVal <= p && p <= last })
	})
}

// hasAddress reports whether an ipBlock of the peers contains one of the addresses.
func hasAddress(peers []networkingv1.NetworkPolicyPeer, addresses []string) bool {
	in := func(cidr, address string) bool {
		block, err := netip.ParsePrefix(cidr)
		at, fault := netip.ParseAddr(address)
		return err == nil && fault == nil && block.Contains(at)
	}
	return slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock == nil {
			return false
		}
		return len(addresses) == 0 || slices.ContainsFunc(addresses, func(a string) bool {
			return in(p.IPBlock.CIDR, a) && !slices.ContainsFunc(p.IPBlock.Except, func(not string) bool { return in(not, a) })
		})
	})
}
