package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"carrick/cluster/failure"
)

// goneWithin is the maximum time that Gone waits. Deleting a Liqo virtual node and draining its pods has been observed
// to take 71 s. By default a pod has 30 s to stop.
const goneWithin = 3 * time.Minute

// Gone waits until the object with the given UID no longer exists. An object with the same name but another UID does
// not count. Gone watches the object, or polls it every second if watching is not permitted. If ctx ends or three
// minutes pass first, the error explains why the object still exists, for example because of a finalizer.
func (c *Cluster) Gone(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID,
) error {
	ctx, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	at := location{gvr: gvr, namespace: namespace, name: name}
	doing := "wait for the deletion of " + at.String()
	var last *unstructured.Unstructured
	var trouble error
	for {
		obj, err := c.send(ctx, "read "+at.String(), request{verb: http.MethodGet, at: at})
		switch {
		case apierrors.IsNotFound(err), err == nil && obj.GetUID() != uid:
			return nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return err
		case err == nil:
			last, trouble = obj, nil
			if c.ended(ctx, at, uid, &last) {
				return nil
			}
		case ctx.Err() == nil:
			trouble = err
		}
		select {
		case <-ctx.Done():
			if trouble != nil {
				return &changeError{doing: doing, err: fmt.Errorf("%w (%w)", trouble, context.Cause(ctx))}
			}
			return &failure.StillThereError{What: at.String(), Why: held(last), Cause: context.Cause(ctx)}
		case <-c.life.Done():
			return &changeError{doing: doing, err: context.Cause(c.life)}
		case <-time.After(time.Second):
		}
	}
}

// ended watches the object until the object is deleted, or until the watch or ctx ends. It reports whether the object
// was deleted, and stores the last version of the object in last.
func (c *Cluster) ended(ctx context.Context, at location, uid types.UID, last **unstructured.Unstructured) bool {
	events, err := c.dynamic.Resource(at.gvr).Namespace(at.namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, at.name).String(),
		ResourceVersion: (*last).GetResourceVersion(),
	})
	if err != nil {
		return false
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-c.life.Done():
			return false
		case event, open := <-events.ResultChan():
			obj, ok := event.Object.(*unstructured.Unstructured)
			switch {
			case !open, !ok, event.Type == watch.Error:
				return false
			case event.Type == watch.Deleted, obj.GetUID() != uid:
				return true
			}
			*last = obj
		}
	}
}

// held returns why an object still exists.
func held(obj *unstructured.Unstructured) string {
	switch {
	case obj == nil:
		return "it has not been read yet"
	case obj.GetDeletionTimestamp() == nil:
		return "it still exists and is not being deleted"
	}
	holders := obj.GetFinalizers()
	if spec, found, _ := unstructured.NestedStringSlice(obj.Object, "spec", "finalizers"); found &&
		obj.GetKind() == "Namespace" {
		holders = append(holders, spec...)
	}
	if len(holders) == 0 {
		return "it is being deleted, and nothing blocks the deletion"
	}
	words := fmt.Sprintf("it is being deleted, which is blocked by %s", strings.Join(holders, ", "))
	if remains := remaining(obj); remains != "" {
		words += " (" + remains + ")"
	}
	return words
}

// remaining returns what a terminating namespace still contains, according to its conditions.
func remaining(obj *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var out []string
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		kind, _ := condition["type"].(string)
		message, _ := condition["message"].(string)
		if condition["status"] == "True" && strings.HasPrefix(kind, "Namespace") && message != "" {
			out = append(out, message)
		}
	}
	return strings.Join(out, "; ")
}
