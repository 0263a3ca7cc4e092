package check

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"carrick/steps"
)

// NamespaceActive verifies that the named namespace of this side exists and is not being deleted.
func NamespaceActive(ctx context.Context, e steps.Env, name string) steps.Result {
	ns, err := Get[corev1.Namespace](ctx, e.Cluster, Namespaces, "", name)
	if err != nil {
		return Missing(err, "namespace "+name, "")
	}
	if ns.Status.Phase == corev1.NamespaceTerminating {
		return steps.Failed("namespace "+name+" is being deleted", e.Kubectl()+" get namespace "+steps.Quoted(name)+
			" -o jsonpath='{.status.conditions}'    # shows what blocks the deletion")
	}
	return steps.Passed("namespace %s is active", name)
}
