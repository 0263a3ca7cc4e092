package check

import (
	"context"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

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
