package check

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"carrick/cluster"
	"carrick/cluster/tracked"
)

// Ended reports whether a pod has terminated, successfully or not. Such a pod stays assigned to its node until it is
// deleted.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// PodsOf returns the pods that a Deployment selects. They include pods that have terminated or are being deleted.
func PodsOf(ctx context.Context, c *cluster.Cluster, d *appsv1.Deployment) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() { // an empty selector would select every pod of the namespace
		selector = labels.Nothing()
	}
	return List[corev1.Pod](ctx, c, Pods, d.Namespace, cluster.Selector{Labels: selector.String()})
}

// PodsSince returns when the newest running pod started. If no running pod has a start time, it returns zero. Pods that
// have terminated or are being deleted don't count.
func PodsSince(ctx context.Context, c *cluster.Cluster, namespace string, s cluster.Selector) (time.Time, error) {
	pods, err := List[corev1.Pod](ctx, c, Pods, namespace, s)
	var newest time.Time
	for _, p := range pods {
		if !Ended(p) && p.DeletionTimestamp == nil && p.Status.StartTime != nil && p.Status.StartTime.After(newest) {
			newest = p.Status.StartTime.Time
		}
	}
	return newest, err
}

// PodLog returns the last lines of a container's log. The log is read again after age and when the pod's phase changes.
// If container is "", the pod must have only one container.
func PodLog(
	ctx context.Context, c *cluster.Cluster, p *corev1.Pod, container string, lines int, age time.Duration,
) (string, error) {
	key := fmt.Sprintf("log/%s/%s/%s/%s/%s/%d", p.Namespace, p.Name, p.UID, container, p.Status.Phase, lines)
	return tracked.Look(ctx, key, age, func(ctx context.Context) (string, error) {
		return c.Logs(ctx, p.Namespace, p.Name, container, lines)
	})
}

// MountedSecret returns the Secret behind the named volume of a Deployment's pods, or "" if there is none.
func MountedSecret(d *appsv1.Deployment, volume string) string {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name == volume && v.Secret != nil {
			return v.Secret.SecretName
		}
	}
	return ""
}
