package argocd

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

var (
	applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

// componentLabel is the label that upstream's manifests, chart and operator set on the application controller's
// StatefulSet.
const componentLabel = "app.kubernetes.io/component=application-controller"

func clusters() steps.Step {
	mayMake := check.MayMakeCheck("Without one of these permissions, the setup stops halfway.", page, mayMake)
	mayMake.On = steps.Both
	return steps.Step{
		Name: "clusters", Title: "Clusters",
		Map: steps.MapRow{Local: "API, Argo CD", Remote: "API"},
		Why: "Argo CD runs on one cluster and deploys to the other. Both API servers must answer, and you must be allowed " +
			"to create what this guide creates.",
		Ask: []steps.Question{{
			Key: "argocd.namespace", Title: "Namespace of Argo CD", Kind: steps.Namespace,
			Help: "Enter the namespace where Argo CD runs, such as argocd. Argo CD reads cluster Secrets and Applications " +
				"only from this namespace.",
			Default: steps.Fixed("argocd", "from upstream's manifests"),
		}},
		Facts: check.Identity(),
		Checks: []steps.Check{
			check.Reachable(), check.SignedIn(), check.Clock(), check.NotTheSame(), mayMake,
			check.AtLeast(24, "Older clusters create token Secrets automatically."),
			{
				Name: "controller", Title: "Argo CD's application controller is ready", On: steps.Local,
				Needs:      []string{"signed-in"},
				Why:        "The controller reads the cluster Secrets and deploys to the clusters.",
				References: []string{"argoproj/argo-cd: manifests/base/application-controller"},
				Run:        controllerReady,
			},
		},
	}
}

func argoNamespace(e steps.Env) string { return e.Answers.Text("argocd.namespace") }

func mayMake(ctx context.Context, e steps.Env) steps.Result {
	ns := argoNamespace(e)
	rights := check.ToApply(ns, check.Secrets, applications)
	rights = append(rights, check.ToFollow(ns, statefulSets, check.NetworkPolicies)...)
	if e.Side == steps.Remote {
		ns = account(e).Namespace
		rights = slices.Concat(check.ToApply("", check.Namespaces), check.ToApply(ns, check.ServiceAccounts, check.Secrets))
		for _, of := range deploysTo(e) {
			rights = append(rights, check.ToApply(of, check.Roles, check.RoleBindings)...)
		}
		if !limited(e) {
			rights = append(rights, check.ToApply("", check.ClusterRoles, check.ClusterRoleBindings)...)
		}
	}
	return check.MayMake(ctx, e, e.SideName()+" cluster", rights, ns)
}

func controllers(ctx context.Context, e steps.Env) ([]*appsv1.StatefulSet, error) {
	of := cluster.Selector{Labels: componentLabel}
	return check.List[appsv1.StatefulSet](ctx, e.Cluster, statefulSets, argoNamespace(e), of)
}

func controllerReady(ctx context.Context, e steps.Env) steps.Result {
	all, err := controllers(ctx, e)
	switch {
	case err != nil:
		return steps.Errored(err)
	case len(all) == 0:
		return steps.Failed("namespace "+argoNamespace(e)+" has no StatefulSet of the application controller",
			e.Kubectl()+" get statefulsets -A -l "+componentLabel+"    # then set argocd.namespace")
	}
	s, want := all[0], *all[0].Spec.Replicas
	_, version := check.SplitImage(s.Spec.Template.Spec.Containers[0].Image)
	ready := s.Status.ReadyReplicas
	found := fmt.Sprintf("StatefulSet %s (%s) has %d of %d replicas ready", s.Name, clean.Text(version), ready, want)
	if want == 0 {
		return steps.Failed(found, check.ScaleUp(e, "statefulset", s.Namespace, s.Name))
	}
	if ready < want {
		return steps.Failed(found, e.Kubectl()+" -n "+s.Namespace+" describe statefulset "+s.Name)
	}
	return steps.Passed("%s", found)
}
