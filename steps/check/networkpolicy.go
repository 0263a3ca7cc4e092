package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"carrick/cluster"
	"carrick/cluster/clean"
)

// PoliciesOf returns the NetworkPolicies of a namespace that restrict ingress or egress of pods with the given labels.
//
// Source: kubernetes/website, content/en/docs/concepts/services-networking/network-policies.md.
func PoliciesOf(
	ctx context.Context, c *cluster.Cluster, namespace string, pod map[string]string, kind networkingv1.PolicyType,
) ([]*networkingv1.NetworkPolicy, error) {
	all, err := List[networkingv1.NetworkPolicy](ctx, c, NetworkPolicies, namespace, cluster.Selector{})
	var out []*networkingv1.NetworkPolicy
	for _, p := range all {
		selects, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil {
			return nil, err
		}
		is := slices.Contains(p.Spec.PolicyTypes, kind)
		if len(p.Spec.PolicyTypes) == 0 {
			is = kind == networkingv1.PolicyTypeIngress || len(p.Spec.Egress) > 0
		}
		if is && selects.Matches(labels.Set(pod)) {
			out = append(out, p)
		}
	}
	return out, err
}

// OpenedBy returns the names of the NetworkPolicies that allow ingress from everywhere to all ports of pods with the
// given labels. It omits the policy with the given name (except). NetworkPolicies are additive, so a policy that allows
// all ingress overrides all others.
func OpenedBy(
	ctx context.Context, c *cluster.Cluster, namespace string, pod map[string]string, except string,
) ([]string, error) {
	all, err := PoliciesOf(ctx, c, namespace, pod, networkingv1.PolicyTypeIngress)
	var out []string
	for _, p := range all {
		if p.Name != except && slices.ContainsFunc(p.Spec.Ingress, fromEverywhere) {
			out = append(out, clean.Name(p.Name))
		}
	}
	return out, err
}

// fromEverywhere reports whether a rule allows ingress from everywhere to all ports. A rule with ports, such as the
// metrics port, allows ingress only to those ports.
func fromEverywhere(r networkingv1.NetworkPolicyIngressRule) bool {
	if len(r.Ports) > 0 {
		return false
	}
	return AnyAddress(r.From) || AnyPod(r.From)
}

// AnyAddress reports whether peers include all IPv4 or all IPv6 addresses. An empty list includes all.
func AnyAddress(peers []networkingv1.NetworkPolicyPeer) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock != nil && len(p.IPBlock.Except) == 0 && strings.HasSuffix(p.IPBlock.CIDR, "/0")
	})
}

// AnyPod reports whether peers include all pods of the cluster. An empty list includes all.
func AnyPod(peers []networkingv1.NetworkPolicyPeer) bool {
	all := func(s *metav1.LabelSelector) bool { return len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.NamespaceSelector != nil && all(p.NamespaceSelector) && (p.PodSelector == nil || all(p.PodSelector))
	})
}

// EgressDeniedBy returns the names of the NetworkPolicies that restrict the egress of pods with the given labels, if
// none of the policies allows TCP to one of the addresses on one of the ports. It returns nothing if egress might be
// allowed, because the addresses of pods behind a namespaceSelector are not known. If addresses is empty, every ipBlock
// counts as a match.
func EgressDeniedBy(
	ctx context.Context, c *cluster.Cluster, namespace string, pod map[string]string, addresses []string, ports ...int32,
) ([]string, error) {
	all, err := PoliciesOf(ctx, c, namespace, pod, networkingv1.PolicyTypeEgress)
	var out []string
	for _, p := range all {
		for _, r := range p.Spec.Egress {
			selects := slices.ContainsFunc(r.To, func(p networkingv1.NetworkPolicyPeer) bool {
				return p.NamespaceSelector != nil
			})
			open := func(port int32) bool {
				return AllowsPort(r.Ports, corev1.ProtocolTCP, port, func(string) bool { return true })
			}
			reaches := func(address string) bool {
				at, err := netip.ParseAddr(address)
				return err == nil && AllowsAddress(r.To, at)
			}
			unknown := len(addresses) == 0 && slices.ContainsFunc(r.To, func(p networkingv1.NetworkPolicyPeer) bool {
				return p.IPBlock != nil
			})
			if slices.ContainsFunc(ports, open) &&
				(selects || unknown || AnyAddress(r.To) || slices.ContainsFunc(addresses, reaches)) {
				return nil, nil
			}
		}
		out = append(out, clean.Name(p.Name))
	}
	return out, err
}

// AllowsPort reports whether the ports of a rule include the given port and protocol. An empty list includes all ports.
// named decides whether a port name matches, because only the receiving pod defines its number.
func AllowsPort(
	ports []networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port int32, named func(string) bool,
) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(r networkingv1.NetworkPolicyPort) bool {
		of := corev1.ProtocolTCP
		if r.Protocol != nil {
			of = *r.Protocol
		}
		switch {
		case of != protocol || r.Port == nil:
			return of == protocol
		case r.Port.Type == intstr.String:
			return named(r.Port.StrVal)
		case r.EndPort != nil:
			return r.Port.IntVal <= port && port <= *r.EndPort
		}
		return r.Port.IntVal == port
	})
}

// AllowsAddress reports whether an ipBlock of the peers contains an address. An empty list includes all addresses.
func AllowsAddress(peers []networkingv1.NetworkPolicyPeer, at netip.Addr) bool {
	in := func(cidr string) bool {
		block, err := netip.ParsePrefix(cidr)
		return err == nil && block.Contains(at)
	}
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock != nil && in(p.IPBlock.CIDR) && !slices.ContainsFunc(p.IPBlock.Except, in)
	})
}

// AllowEgress returns the command that allows all egress from the pods of a Deployment. If the Deployment's selector
// has no labels, it returns "", because an empty selector would select every pod. kubectl is the command with its
// context.
func AllowEgress(kubectl string, d *appsv1.Deployment) string {
	pod := d.Spec.Template.Labels
	if d.Spec.Selector != nil && len(d.Spec.Selector.MatchLabels) > 0 {
		pod = d.Spec.Selector.MatchLabels
	}
	match, err := json.Marshal(pod)
	if err != nil || len(pod) == 0 {
		return ""
	}
	return fmt.Sprintf(`%s -n %s apply -f - <<'EOF'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s-egress}
spec: {podSelector: {matchLabels: %s}, policyTypes: [Egress], egress: [{}]}
EOF`, kubectl, d.Namespace, d.Name, match)
}
