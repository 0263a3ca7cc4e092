package liqopeer

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reflect copies the objects in a tenant namespace to a remote cluster, and their status back.
func (s *site) reflect(ctx context.Context, id string, r *remote) error {
	var all []error
	for _, resource := range replicatedAll {
		all = append(all, s.reflectAll(ctx, id, r, resource))
	}
	return errors.Join(all...)
}

// reflectAll replicates the objects of one resource. It does nothing until a list on the remote cluster has succeeded
// once. If the permission is revoked later, a failed creation is not retried until the original changes or the
// replicator restarts.
//
// Source: liqotech/liqo v1.2.0, internal/crdReplicator/reflection/handler.go (handle: no error if creating is
// forbidden; "not synced" is an error and is retried).
func (s *site) reflectAll(ctx context.Context, id string, r *remote, resource schema.GroupVersionResource) error {
	there, err := r.dynamic.Resource(resource).Namespace(r.namespace).
		List(ctx, metav1.ListOptions{LabelSelector: replicated + "=" + yes + "," + origin + "=" + id})
	forbidden := apierrors.IsForbidden(err) && r.synced[resource]
	if err != nil && !forbidden {
		return err // forbidden or no response: change nothing and remove no finalizer
	}
	here, err := s.seen.List(ctx, resource, r.local, replication+"="+yes)
	if err != nil {
		return ignoreMissing(err)
	}
	if forbidden {
		for i := range here {
			r.refused[here[i].GetUID()] = here[i].GetResourceVersion()
		}
		return nil // keep the finalizer: unlike upstream's watch, this list does not show that the copy was deleted
	}
	r.synced[resource] = true
	copies := map[string]*unstructured.Unstructured{}
	for i := range there.Items {
		copies[there.Items[i].GetName()] = &there.Items[i]
	}
	var all []error
	for i := range here {
		original := &here[i]
		if original.GetLabels()[destination] != r.id {
			continue
		}
		all = append(all, s.reflectOne(ctx, id, r, resource, original, copies[original.GetName()]))
		delete(copies, original.GetName())
	}
	for _, orphan := range copies { // the original was deleted between two passes
		all = append(all, r.remove(ctx, resource, orphan))
	}
	return errors.Join(all...)
}

// reflectOne replicates original. copied is the existing copy, or nil.
func (s *site) reflectOne(
	ctx context.Context, id string, r *remote, resource schema.GroupVersionResource,
	original, copied *unstructured.Unstructured,
) error {
	switch {
	case original.GetDeletionTimestamp() != nil && copied != nil:
		return r.remove(ctx, resource, copied)
	case original.GetDeletionTimestamp() != nil:
		return s.release(ctx, resource, original, resourceFinalizer)
	}
	if err := s.hold(ctx, resource, original, resourceFinalizer); err != nil {
		return err
	}
	target := r.dynamic.Resource(resource).Namespace(r.namespace)
	if copied == nil && r.refused[original.GetUID()] == original.GetResourceVersion() {
		return nil
	}
	if copied == nil {
		_, err := target.Create(ctx, replica(original, id, r.namespace), metav1.CreateOptions{FieldManager: crdReplicator})
		return err
	}
	if copied.GetDeletionTimestamp() != nil {
		return nil
	}
	if !equality.Semantic.DeepEqual(original.Object["spec"], copied.Object["spec"]) {
		copied.Object["spec"] = original.Object["spec"]
		_, err := target.Update(ctx, copied, metav1.UpdateOptions{FieldManager: crdReplicator})
		return err
	}
	answer, _ := copied.Object["status"].(map[string]any) // a new copy without status clears the original's status
	said, _ := original.Object["status"].(map[string]any)
	if len(answer)+len(said) == 0 || equality.Semantic.DeepEqual(said, answer) {
		return nil
	}
	if answer == nil {
		answer = map[string]any{}
	}
	return s.put(ctx, resource, original, "/status", answer, "status")
}

// replica returns the copy of an object for the remote cluster.
//
// Source: liqotech/liqo v1.2.0, internal/crdReplicator/reflection/handler.go (createRemoteObject,
// mutateLabelsForRemote).
func replica(original *unstructured.Unstructured, id, namespace string) *unstructured.Unstructured {
	labels := maps.Clone(original.GetLabels())
	labels[replication], labels[replicated], labels[origin], labels[remoteClusterID] = "false", yes, id, id
	delete(labels, "liqo.io/ownership")
	made := &unstructured.Unstructured{Object: map[string]any{"spec": original.Object["spec"]}}
	made.SetGroupVersionKind(original.GroupVersionKind())
	made.SetNamespace(namespace)
	made.SetName(original.GetName())
	made.SetLabels(labels)
	made.SetAnnotations(original.GetAnnotations())
	return made
}

func (r *remote) remove(
	ctx context.Context, resource schema.GroupVersionResource, copied *unstructured.Unstructured,
) error {
	if copied.GetDeletionTimestamp() != nil {
		return nil
	}
	err := r.dynamic.Resource(resource).Namespace(r.namespace).Delete(ctx, copied.GetName(), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
