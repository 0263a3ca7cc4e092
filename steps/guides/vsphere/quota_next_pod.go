package vsphere

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// quotaRefusesNextPod finds a ResourceQuota that will reject the next pod of d, whose pods are running. found is "" if
// there is none. A quota does not affect existing pods, so the problem has no symptom until a pod stops.
func quotaRefusesNextPod(ctx context.Context, e steps.Env, d *appsv1.Deployment) (found, fix string, err error) {
	all, err := check.List[corev1.ResourceQuota](ctx, e.Cluster, check.ResourceQuotas, "", cluster.Selector{})
	if apierrors.IsForbidden(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	for _, q := range all {
		if q.Namespace != d.Namespace || len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil { // scopes can exclude pods
			continue
		}
		hard, says := map[string]any{}, []string(nil)
		for _, key := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
			if refusesNext(q, key, d) {
				most := q.Spec.Hard[key]
				hard[string(key)] = nil
				says = append(says, fmt.Sprintf("%s to %s", clean.Text(string(key)), most.String()))
			}
		}
		if len(says) > 0 {
			fix, err = quotaFix(ctx, e, d.Namespace, q.Name, hard)
			return fmt.Sprintf("ResourceQuota %s/%s limits %s. If a pod of %s stops, it is not replaced",
				q.Namespace, clean.Name(q.Name), strings.Join(says, ", "), d.Name), fix, err
		}
	}
	return "", "", nil
}

// refusesNext reports whether the limit key of quota q rejects the next pod of d. Either the usage already exceeds the
// limit, which is possible if the pods are older than the quota, or the limit allows fewer pods than the Deployment
// has. A quota that is exactly used up still allows a pod to be replaced.
func refusesNext(q *corev1.ResourceQuota, key corev1.ResourceName, d *appsv1.Deployment) bool {
	hard, used := q.Spec.Hard[key], q.Status.Used[key]
	switch of := strings.TrimPrefix(string(key), "count/"); {
	case of == string(corev1.ResourcePods):
		return used.Cmp(hard) > 0 || hard.Value() < int64(d.Status.Replicas)
	case key == corev1.ResourceRequestsStorage, strings.Contains(of, "/"):
		return false
	case key == corev1.ResourceCPU, key == corev1.ResourceMemory,
		strings.HasPrefix(of, "requests."), strings.HasPrefix(of, "limits."):
		return used.Cmp(hard) > 0
	}
	return false
}
