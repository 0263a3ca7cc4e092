package vsphere

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// apiServerPorts are those on which pods reach API servers: of the Service kubernetes, and of what is behind it.
var apiServerPorts = []int32{443, 6443}

// egressDenied finds NetworkPolicies that keep the provisioner's pods from the API server; found is "" where none does.
// The export is mounted by the kubelet, to which they do not apply.
func egressDenied(ctx context.Context, e steps.Env, p *provisioner) (found, fix string, err error) {
	var addresses []string
	behind, err := check.ReadyEndpoints(ctx, e.Cluster, "default", "kubernetes", 0)
	if err != nil && !apierrors.IsForbidden(err) {
		return "", "", err
	}
	for _, at := range behind {
		addresses = append(addresses, at.Addresses...)
	}
	pod := p.Spec.Template.Labels
	by, err := check.EgressDeniedBy(ctx, e.Cluster, p.Namespace, pod, addresses, apiServerPorts...)
	if apierrors.IsForbidden(err) {
		return "", "", nil
	}
	if err != nil || len(by) == 0 {
		return "", "", err
	}
	var match []string
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Selector.MatchLabels)) {
		match = append(match, fmt.Sprintf("%s: %q", key, p.Spec.Selector.MatchLabels[key]))
	}
	fix = fmt.Sprintf(`%s apply -f - <<'EOF'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s-egress, namespace: %s}
spec:
  podSelector: {matchLabels: {%s}}
  policyTypes: [Egress]
  egress: [{}]
EOF`, e.Kubectl(), p.Name, p.Namespace, strings.Join(match, ", "))
	return fmt.Sprintf("NetworkPolicy %s in namespace %s does not allow pods of %s to reach the API server: "+
		"where the network enforces it, claims get no volume", check.Some(by), p.Namespace, p.Name), fix, nil
}
