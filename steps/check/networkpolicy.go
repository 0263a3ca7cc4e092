package check

import (
	"context"
	"slices"

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
	return len(r.From) == 0 || slices.ContainsFunc(r.From, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			return (p.IPBlock.CIDR == "0.0.0.0/0" || p.IPBlock.CIDR == "::/0") && len(p.IPBlock.Except) == 0
		}
		everyPod := p.PodSelector == nil || len(p.PodSelector.MatchLabels)+len(p.PodSelector.MatchExpressions) == 0
		return everyPod && p.NamespaceSelector != nil && len(p.NamespaceSelector.MatchLabels)+len(p.NamespaceSelector.MatchExpressions) == 0
	})
}
