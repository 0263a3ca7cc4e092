package renku

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// workingOperator is ready, or a failure of an operator that is available and can't work. Its probes answer without the
// API server (amalthea: cmd/amalthea/main.go, healthz.Ping).
func workingOperator(ctx context.Context, e steps.Env, d *appsv1.Deployment, ready steps.Result) steps.Result {
	at := e.Kubectl() + " -n " + d.Namespace
	if operatorEnv(d)["CLUSTER_SCOPED"] == "true" {
		is, err := listsEverywhere(ctx, e, d)
		if err != nil && !apierrors.IsForbidden(err) {
			return steps.Unseen(err)
		}
		if err == nil && !is {
			const found = "operator %s/%s has CLUSTER_SCOPED=true, and no ClusterRoleBinding lets its ServiceAccount list " +
				"sessions in all namespaces: it reconciles none"
			fix := at + " set env deployment/" + d.Name + " -c manager CLUSTER_SCOPED=false"
			return steps.Failed(fmt.Sprintf(found, d.Namespace, d.Name), fix).WithoutAction()
		}
	}
	by, err := egressDeniedBy(ctx, e, d)
	if err != nil && !apierrors.IsForbidden(err) {
		return steps.Unseen(err)
	}
	if by != "" {
		const found = "NetworkPolicy %s/%s denies operator %s egress to the API server: it reconciles no session"
		fix := at + " edit networkpolicy " + steps.Quoted(by) +
			"    # allow the operator egress to the API server and to sessions"
		if selector, err := json.Marshal(podLabels(d)); err == nil && len(podLabels(d)) > 0 { // {} would select sessions, too
			fix = at + " apply -f - <<EOF\n" + fmt.Sprintf(operatorEgress, d.Name, selector) + "EOF"
		}
		return steps.Failed(fmt.Sprintf(found, d.Namespace, cluster.CleanName(by), d.Name), fix).WithoutAction()
	}
	return ready
}

// listsEverywhere reports whether ClusterRoleBindings let the operator list sessions in all namespaces. With
// CLUSTER_SCOPED its cache lists them there, and without that permission it never starts to reconcile
// (amalthea: cmd/amalthea/main.go, cache.Options).
func listsEverywhere(ctx context.Context, e steps.Env, d *appsv1.Deployment) (bool, error) {
	account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
	grants, err := check.Grants(ctx, e.Cluster, d.Namespace)
	if err != nil {
		return false, err
	}
	for _, g := range grants {
		if g.Of != "" || g.Account != "" && g.Account != account {
			continue
		}
		rules, err := check.RulesOf(ctx, e.Cluster, g.RoleRef(), "")
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		need := []rbacv1.PolicyRule{rule(sessionsKind.Group, sessionsKind.Resource, "list")}
		if ok, _ := validation.Covers(rules, need); ok {
			return true, nil
		}
	}
	return false, nil
}

// egressDeniedBy is a policy that restricts the operator's egress, where none allows more than DNS; "": its egress is
// not restricted, or a policy allows some, perhaps to the API server. Policies add up.
func egressDeniedBy(ctx context.Context, e steps.Env, d *appsv1.Deployment) (string, error) {
	all, err := check.List[networkingv1.NetworkPolicy](
		ctx, e.Cluster, check.NetworkPolicies, d.Namespace, cluster.Selector{},
	)
	if err != nil {
		return "", err
	}
	by := ""
	for _, p := range all {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) ||
			!selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			continue
		}
		for _, r := range p.Spec.Egress {
			if !onlyDNS(r.Ports) {
				return "", nil
			}
		}
		by = cmp.Or(by, p.Name)
	}
	return by, nil
}

// podLabels select the operator's pods.
func podLabels(d *appsv1.Deployment) map[string]string {
	if d.Spec.Selector != nil && len(d.Spec.Selector.MatchLabels) > 0 {
		return d.Spec.Selector.MatchLabels
	}
	return d.Spec.Template.Labels
}

func onlyDNS(ports []networkingv1.NetworkPolicyPort) bool {
	return len(ports) > 0 && !slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		udp := p.Protocol != nil && *p.Protocol == corev1.ProtocolUDP
		return !udp && (p.Port == nil || p.EndPort != nil || p.Port.IntValue() != 53 && p.Port.IntValue() != 5353)
	})
}

// operatorEgress allows the operator all egress: it asks the API server, and sessions for when they were last used.
const operatorEgress = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s-egress}
spec: {podSelector: {matchLabels: %s}, policyTypes: [Egress], egress: [{}]}
`
