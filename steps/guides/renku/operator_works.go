package renku

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// workingOperator returns Fail if the operator cannot reach the API server or cannot list sessions.
// Otherwise it returns the verdict ready. The operator's probes do not detect these problems,
// because they succeed without the API server (amalthea: cmd/amalthea/main.go, healthz.Ping).
func workingOperator(ctx context.Context, e steps.Env, d *appsv1.Deployment, ready steps.Result) steps.Result {
	at := e.Kubectl() + " -n " + d.Namespace
	if operatorEnv(d)["CLUSTER_SCOPED"] == "true" {
		// The operator's cache lists sessions in all namespaces. Without that permission the operator
		// never starts to reconcile (amalthea: cmd/amalthea/main.go, cache.Options).
		name := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
		account := check.Account{Namespace: d.Namespace, Name: name}
		lists := check.Verbs(sessionsKind.Group, sessionsKind.Resource, "", "list")
		lacks, err := check.Denied(ctx, e.Cluster, account.User(), true, lists...)
		if err != nil && !apierrors.IsForbidden(err) {
			return steps.Errored(err)
		}
		if len(lacks) > 0 {
			const found = "operator %s/%s has CLUSTER_SCOPED=true, but no ClusterRoleBinding allows its ServiceAccount to " +
				"list sessions in all namespaces, so the operator reconciles no session"
			fix := at + " set env deployment/" + d.Name + " -c manager CLUSTER_SCOPED=false"
			return steps.Failed(fmt.Sprintf(found, d.Namespace, d.Name), fix).WithoutAction()
		}
	}
	by, err := egressDeniedBy(ctx, e, d)
	if err != nil && !apierrors.IsForbidden(err) {
		return steps.Errored(err)
	}
	if by != "" {
		const found = "NetworkPolicy %s/%s denies operator %s egress to the API server, so the operator reconciles no session"
		// The operator connects to the API server. It also connects to sessions to find out when they
		// were last used.
		fix := cmp.Or(check.AllowEgress(e.Kubectl(), d), at+" edit networkpolicy "+steps.Quoted(by)+
			"    # allow the operator egress to the API server and to sessions")
		return steps.Failed(fmt.Sprintf(found, d.Namespace, clean.Name(by), d.Name), fix).WithoutAction()
	}
	return ready
}

// egressDeniedBy returns the name of a policy that restricts the operator's egress to DNS or less.
// It returns "" if no policy restricts egress, or if at least one policy allows egress beyond DNS.
// Such egress can include the API server, and policies are additive.
func egressDeniedBy(ctx context.Context, e steps.Env, d *appsv1.Deployment) (string, error) {
	all, err := check.PoliciesOf(
		ctx, e.Cluster, d.Namespace, d.Spec.Template.Labels, networkingv1.PolicyTypeEgress,
	)
	by := ""
	for _, p := range all {
		for _, r := range p.Spec.Egress {
			if !onlyDNS(r.Ports) {
				return "", nil
			}
		}
		by = cmp.Or(by, p.Name)
	}
	return by, err
}

func onlyDNS(ports []networkingv1.NetworkPolicyPort) bool {
	return len(ports) > 0 && !slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		udp := p.Protocol != nil && *p.Protocol == corev1.ProtocolUDP
		return !udp && (p.Port == nil || p.EndPort != nil || p.Port.IntValue() != 53 && p.Port.IntValue() != 5353)
	})
}
