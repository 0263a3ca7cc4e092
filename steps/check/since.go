package check

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
)

// PodsSince is when the newest of some pods that run has started; zero: none runs, or none says. Pods that have ended,
// or are being deleted, don't count.
func PodsSince(ctx context.Context, c *cluster.Cluster, namespace string, s cluster.Selector) (time.Time, error) {
	pods, err := List[corev1.Pod](ctx, c, Pods, namespace, s)
	var newest time.Time
	for _, p := range pods {
		over := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
		if !over && p.DeletionTimestamp == nil && p.Status.StartTime != nil && p.Status.StartTime.After(newest) {
			newest = p.Status.StartTime.Time
		}
	}
	return newest, err
}
