package liqopeer

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/sandbox/standin"
)

// list returns the cached objects in all namespaces. It returns none if the API server does not serve the resource.
func list[S, T any](ctx context.Context, s *standin.Seen, of schema.GroupVersionResource) ([]object[S, T], error) {
	all, err := standin.Listed[object[S, T]](ctx, s, of, "", "")
	return all, ignoreMissing(err)
}

// listNow is like list, but bypasses the cache.
func listNow[S, T any](ctx context.Context, s *site, of schema.GroupVersionResource) ([]object[S, T], error) {
	found, err := s.dynamic.Resource(of).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, ignoreMissing(err)
	}
	all := make([]object[S, T], len(found.Items))
	for i := range found.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// create creates an object. It returns nil if the object exists.
func create[S, T any](ctx context.Context, s *site, to schema.GroupVersionResource, kind string, o object[S, T]) error {
	o.TypeMeta = metav1.TypeMeta{APIVersion: to.GroupVersion().String(), Kind: kind}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&o)
	if err != nil {
		return err
	}
	delete(fields, "status")
	_, err = s.dynamic.Resource(to).Namespace(o.Namespace).
		Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{FieldManager: controllerManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// report updates an object's status unless it is unchanged.
func report[S, T any](ctx context.Context, s *site, of schema.GroupVersionResource, o *object[S, T], now T) error {
	if equality.Semantic.DeepEqual(o.Status, now) {
		return nil
	}
	return s.put(ctx, of, o, "/status", now, "status")
}

// put sets the field of o at the given JSON pointer.
func (s *site) put(
	ctx context.Context, of schema.GroupVersionResource, o metav1.Object, field string, value any, subresources ...string,
) error {
	return s.patch(ctx, of, o, []map[string]any{{"op": "add", "path": field, "value": value}}, subresources...)
}

func (s *site) patch(
	ctx context.Context, of schema.GroupVersionResource, o metav1.Object, operations []map[string]any,
	subresources ...string,
) error {
	data, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	_, err = s.dynamic.Resource(of).Namespace(o.GetNamespace()).
		Patch(
			ctx, o.GetName(), types.JSONPatchType, data, metav1.PatchOptions{FieldManager: controllerManager}, subresources...,
		)
	return err
}

// hold adds a finalizer if it is missing.
func (s *site) hold(ctx context.Context, of schema.GroupVersionResource, o metav1.Object, finalizer string) error {
	if held(o, finalizer) {
		return nil
	}
	return s.finalizers(ctx, of, o, append(slices.Clone(o.GetFinalizers()), finalizer))
}

// release removes a finalizer.
func (s *site) release(ctx context.Context, of schema.GroupVersionResource, o metav1.Object, finalizer string) error {
	if !held(o, finalizer) {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == finalizer })
	err := s.finalizers(ctx, of, o, left)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// finalizers sets an object's finalizers. It fails if the object has changed in the meantime.
func (s *site) finalizers(ctx context.Context, of schema.GroupVersionResource, o metav1.Object, all []string) error {
	return s.patch(ctx, of, o, []map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": o.GetResourceVersion()},
		{"op": "add", "path": "/metadata/finalizers", "value": all},
	})
}

func held(o metav1.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}

// remove deletes an object. The UID is a precondition, so that a newer object with the same name remains.
func (s *site) remove(ctx context.Context, of schema.GroupVersionResource, o metav1.Object) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := o.GetUID()
	err := s.dynamic.Resource(of).Namespace(o.GetNamespace()).
		Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// warn records a warning event, but only once per message.
func (s *site) warn(ctx context.Context, about corev1.ObjectReference, reason, message string) error {
	events := s.client.CoreV1().Events(about.Namespace)
	known, err := events.List(
		ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(about.UID) + ",reason=" + reason},
	)
	if err != nil {
		return err
	}
	for _, e := range known.Items {
		if e.Message == message {
			return nil
		}
	}
	now := metav1.NewTime(time.Now())
	_, err = events.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: about.Name + ".", Namespace: about.Namespace, Annotations: mark()},
		InvolvedObject: about, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		Source: corev1.EventSource{Component: controllerManager}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	return err
}

func refer[S, T any](o *object[S, T]) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		ResourceVersion: o.ResourceVersion,
	}
}

// owned returns owner references to o.
func owned[S, T any](o *object[S, T]) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}}
}

func mark() map[string]string { return map[string]string{standIn: markText} }
