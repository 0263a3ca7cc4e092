package check

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NodeCondition returns the node's condition of the given type, or the zero value if the node has none.
func NodeCondition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	if i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind }); i >= 0 {
		return n.Status.Conditions[i]
	}
	return corev1.NodeCondition{}
}

// InternalAddresses returns a node's addresses of type InternalIP, unparsed.
func InternalAddresses(n *corev1.Node) []string {
	var out []string
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out = append(out, a.Address)
		}
	}
	return out
}
