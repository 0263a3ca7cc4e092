package renku

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// workloads lists objects in all namespaces. If the user is not allowed to do so, it lists only the
// objects in namespace.
func workloads[T any](
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource, namespace, labels string,
) ([]*T, error) {
	s := cluster.Selector{Labels: labels}
	found, err := check.List[T](ctx, e.Cluster, gvr, "", s)
	if apierrors.IsForbidden(err) {
		return check.List[T](ctx, e.Cluster, gvr, namespace, s)
	}
	return found, err
}

// operatedNamespace returns the namespace in which a side's sessions run.
func operatedNamespace(e steps.Env) string {
	if e.Side == steps.Local {
		return renkuNamespace(e)
	}
	return sessionsNamespace(e)
}

// operators returns the session operator that reconciles a side's sessions, and all other session
// operators. inCharge is nil if there is no such operator. An operator in another namespace counts
// only if a ClusterRoleBinding allows it to reconcile sessions in all namespaces. The chart creates
// such a binding if clusterScoped is true (amalthea @ 82726e52:
// helm-chart/amalthea-sessions/templates/manager-rbac.yaml).
func operators(ctx context.Context, e steps.Env) (inCharge *appsv1.Deployment, others []*appsv1.Deployment, err error) {
	ns := operatedNamespace(e)
	found, err := workloads[appsv1.Deployment](ctx, e, check.Deployments, ns, operatorLabels)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range found {
		watches := operatorEnv(d)
		switch {
		case watches["RELEASE_NAMESPACE"] == ns && d.Namespace == ns && inCharge == nil:
			inCharge = d
		default:
			others = append(others, d)
		}
	}
	for i, d := range others {
		watches := operatorEnv(d)
		if inCharge != nil || watches["CLUSTER_SCOPED"] != "true" && watches["RELEASE_NAMESPACE"] != ns {
			continue
		}
		ok, err := reconcilesEverywhere(ctx, e, d)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			return d, slices.Delete(slices.Clone(others), i, i+1), nil
		}
	}
	return inCharge, others, nil
}

func reconcilesEverywhere(ctx context.Context, e steps.Env, d *appsv1.Deployment) (bool, error) {
	need := rule("amalthea.dev", "amaltheasessions", "update")
	return check.GrantedEverywhere(ctx, e.Cluster, d.Namespace, d.Spec.Template.Spec, need)
}

// operatorEnv returns the environment variables of the operator's container. RELEASE_NAMESPACE is
// "default" if it is not set, as in the operator (amalthea 0.31.0 cmd/amalthea/main.go).
func operatorEnv(d *appsv1.Deployment) map[string]string {
	out := map[string]string{"RELEASE_NAMESPACE": "default"}
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name != "manager" {
			continue
		}
		for _, v := range c.Env {
			switch {
			case v.ValueFrom == nil && v.Value != "":
				out[v.Name] = v.Value
			case v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
				out[v.Name] = d.Namespace
			}
		}
	}
	return out
}

// driver returns the DaemonSet of csi-rclone, or nil if there is none. It prefers the chart's usual
// namespace, then the namespace of Renku or its sessions. Any tenant can create a DaemonSet in
// another namespace. Such a DaemonSet counts only if its ServiceAccount can read persistent volumes
// in all namespaces, as in the chart (csi-rclone @ 7d4d766:
// deploy/csi-rclone/templates/csi-nodeplugin-rbac.yaml). The CSIDriver object cannot identify the
// DaemonSet, because their names differ (csi-driver.yaml).
func driver(ctx context.Context, e steps.Env) (*appsv1.DaemonSet, error) {
	found, err := workloads[appsv1.DaemonSet](ctx, e, check.DaemonSets, rcloneSpace, driverLabels)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for _, ns := range []string{rcloneSpace, operatedNamespace(e)} {
		for _, d := range found {
			if d.Namespace == ns {
				return d, nil
			}
		}
	}
	for _, d := range found {
		need := rule("", "persistentvolumes", "get")
		ok, err := check.GrantedEverywhere(ctx, e.Cluster, d.Namespace, d.Spec.Template.Spec, need)
		if ok || err != nil {
			return d, err
		}
	}
	return nil, nil
}

func workloadFact(name, namespace string, labels, notes map[string]string) map[string]any {
	return map[string]any{
		"name": name, "namespace": namespace, "release": notes["meta.helm.sh/release-name"],
		"ours": len(inventory.OtherLinks(labels, "")) > 0,
	}
}

func operatorExists(ctx context.Context, e steps.Env) (any, error) {
	d, _, err := operators(ctx, e)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, steps.Absent("no session operator watches namespace %s", sessionsNamespace(e))
	}
	return workloadFact(d.Name, d.Namespace, d.Labels, d.Annotations), nil
}

func driverExists(ctx context.Context, e steps.Env) (any, error) {
	d, err := driver(ctx, e)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, steps.Absent("csi-rclone is not installed")
	}
	return workloadFact(d.Name, d.Namespace, d.Labels, d.Annotations), nil
}

// isOurs reports whether carrick installed the workload, for this link or for another link. fact is
// the name of a fact from workloadFact.
func isOurs(f steps.Facts, fact string) bool { return f.Field(fact, "ours") == true }
