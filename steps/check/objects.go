package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
)

// Missing turns an error from a read into a verdict. If the object was not found, the verdict is a failure with the
// given fix. For any other error the verdict is unknown.
func Missing(err error, what, fix string) steps.Result {
	if apierrors.IsNotFound(err) && (fix == "" || strings.HasPrefix(fix, "carrick apply ")) {
		return steps.Undone("there is no " + what).Or(fix)
	}
	if apierrors.IsNotFound(err) {
		return steps.Failed("there is no "+what, fix)
	}
	return steps.Errored(err)
}

// AbsentFails turns an error into a verdict. An AbsentError becomes a failure with the given fix. For any other error
// the verdict is unknown.
func AbsentFails(err error, fix string) steps.Result {
	if steps.IsAbsent(err) {
		return steps.Failed(err.Error(), fix)
	}
	return steps.Errored(err)
}

// Served verifies that a CRD exists and that the API server serves the given version.
func Served(ctx context.Context, c *cluster.Cluster, crd, version, fix string) steps.Result {
	obj, err := c.Get(ctx, CRDs, "", crd)
	if err != nil {
		return Missing(err, "CustomResourceDefinition "+crd, fix)
	}
	if obj.GetDeletionTimestamp() != nil {
		return steps.Failed(crd+" is being deleted with all its objects", fix)
	}
	versions := sliceAt(obj.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if m["name"] == version && m["served"] == true {
			return steps.Passed("%s %s is served", crd, version)
		}
	}
	return steps.Failed(fmt.Sprintf("%s does not serve version %s", crd, version), fix)
}

// Available verifies that all replicas of a Deployment are available. The finding contains how many are not. If the
// Deployment is scaled to 0 replicas, the fix is the command that scales it, and otherwise the given one.
func Available(ctx context.Context, e steps.Env, namespace, name, fix string) steps.Result {
	d, err := Get[appsv1.Deployment](ctx, e.Cluster, Deployments, namespace, name)
	if err != nil {
		return Missing(err, "Deployment "+namespace+"/"+name, fix)
	}
	return AvailableNow(e, d, fix)
}

// AvailableNow is like Available, for a Deployment that the caller has already read.
func AvailableNow(e steps.Env, d *appsv1.Deployment, fix string) steps.Result {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	if want == 0 {
		return steps.Failed(
			fmt.Sprintf("Deployment %s/%s is scaled to 0 replicas", d.Namespace, d.Name),
			ScaleUp(e, "deployment", d.Namespace, d.Name),
		)
	}
	if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < want || d.Status.AvailableReplicas < want {
		return steps.Waits(
			WaitsSince(d), "%d of %d replicas of %s are available", d.Status.AvailableReplicas, want, d.Name,
		).Or(fix)
	}
	return steps.Passed("%d of %d replicas of %s are available", d.Status.AvailableReplicas, want, d.Name)
}

// ScaleUp returns the command that scales a Deployment or StatefulSet from 0 replicas to one.
func ScaleUp(e steps.Env, kind, namespace, name string) string {
	return fmt.Sprintf(
		"%s -n %s scale %s %s --replicas=1", e.Kubectl(), steps.Quoted(namespace), kind, steps.Quoted(name),
	)
}

// WaitsSince returns when a Deployment became unavailable. If the Deployment is available and only rolling out,
// WaitsSince returns when the rollout last progressed. A new Deployment has neither condition, so its creation time is
// used.
func WaitsSince(d *appsv1.Deployment) time.Time {
	since := d.CreationTimestamp.Time
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentAvailable && c.Status != corev1.ConditionTrue:
			return c.LastTransitionTime.Time
		case c.Type == appsv1.DeploymentProgressing && c.LastUpdateTime.After(since):
			since = c.LastUpdateTime.Time
		}
	}
	return since
}

// ReplicaFailure returns why the API server rejects the pods of a Deployment, or "" if it rejects none. The
// Deployment's condition repeats the event of its ReplicaSet.
func ReplicaFailure(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// Exists verifies that an object exists.
func Exists(
	ctx context.Context, c *cluster.Cluster, gvr schema.GroupVersionResource, namespace, name, what, fix string,
) steps.Result {
	obj, err := c.Get(ctx, gvr, namespace, name)
	if err != nil {
		return Missing(err, what, fix)
	}
	if obj.GetDeletionTimestamp() != nil {
		return steps.Failed(fmt.Sprintf("%s is being deleted (finalizers %v)", what, obj.GetFinalizers()), fix)
	}
	return steps.Passed("%s exists", what)
}

// sliceAt returns a list from a shared object without copying it.
func sliceAt(obj map[string]any, fields ...string) []any {
	var v any = obj
	for _, f := range fields {
		m, _ := v.(map[string]any)
		v = m[f]
	}
	s, _ := v.([]any)
	return s
}

// Warning returns the message of the last warning event about an object, or "" if there is none.
func Warning(ctx context.Context, c *cluster.Cluster, namespace, kind, name string) string {
	list, err := List[corev1.Event](ctx, c, Events, namespace, cluster.Selector{
		Fields: "involvedObject.kind=" + kind + ",involvedObject.name=" + name + ",type=Warning",
	})
	if err != nil || len(list) == 0 {
		return "" // a missing permission for events must not hide the verdict
	}
	last := slices.MaxFunc(list, func(a, b *corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return last.Reason + ": " + last.Message
}

// Condition returns the status condition of the given type, or nil if the object has none.
func Condition(o *unstructured.Unstructured, kind string) map[string]any {
	for _, c := range sliceAt(o.Object, "status", "conditions") {
		if m, _ := c.(map[string]any); m["type"] == kind {
			return m
		}
	}
	return nil
}
