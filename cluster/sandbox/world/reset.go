package world

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// inTheWay lists resources that can block or delay the deletion of other objects. Reset deletes them first.
var inTheWay = []string{
	"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicybindings",
	"mutatingadmissionpolicybindings", "apiservices",
}

// Reset restores the state that Remember recorded. It deletes new objects regardless of their finalizers, and restores
// changed and deleted ones. Controllers restore the objects that they own.
func (c *Cluster) Reset(ctx context.Context) error {
	if c.baseline == nil {
		return errors.New("no state was recorded to reset to")
	}
	changed := false
	err := Until(ctx, c.Side+" to return to its recorded state", func() (bool, error) {
		now, err := c.list(ctx)
		if err != nil {
			return false, err
		}
		if added := c.added(now); len(added) > 0 {
			return false, c.sweep(ctx, now, added)
		}
		touched := c.touched(now)
		changed = changed || len(touched) > 0
		err = c.restore(ctx, now, touched) // retried after a conflict with a controller
		return err == nil, err
	})
	c.mapper.Reset()
	if err != nil {
		return err
	}
	if c.based && changed { // restores the status of base objects
		if err := c.Base(ctx); err != nil {
			return err
		}
	}
	if err := c.Settle(ctx); err != nil || !changed {
		return err
	}
	now, err := c.list(ctx)
	c.cleaned(now)
	return err
}

// touched returns the objects of the baseline that were deleted, or written since they were last known to be clean.
func (c *Cluster) touched(now inventory) []key {
	var keys []key
	for k := range c.baseline {
		if is := now[k]; is == nil || is.GetResourceVersion() != c.clean[k] {
			keys = append(keys, k)
		}
	}
	return keys
}

// added returns the objects that are new since Remember. It skips objects that a controller created for a recorded
// object, unless that recorded object was deleted.
func (c *Cluster) added(now inventory) []key {
	ours := map[types.UID]bool{}
	for found := true; found; {
		found = false
		for k, object := range now {
			_, mine := c.baseline[k]
			if owner := metav1.GetControllerOf(object); owner != nil {
				mine = ours[owner.UID]
			}
			if mine && !ours[object.GetUID()] {
				ours[object.GetUID()], found = true, true
			}
		}
	}
	var keys []key
	for k, object := range now {
		automatic := object.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != ""
		if !ours[object.GetUID()] && !automatic {
			keys = append(keys, k)
		}
	}
	return keys
}

// sweep deletes each object once. Reset calls it until no new objects are left.
func (c *Cluster) sweep(ctx context.Context, now inventory, added []key) error {
	first := slices.DeleteFunc(
		slices.Clone(added), func(k key) bool { return !slices.Contains(inTheWay, k.resource.Resource) },
	)
	if len(first) > 0 {
		added = first
	}
	for _, wave := range ownersFirst(now, added) {
		group, ctx := errgroup.WithContext(ctx)
		for _, k := range wave {
			if k.resource.Resource == "namespaces" && crowded(now, k.name) {
				continue
			}
			group.Go(func() error {
				err := c.remove(ctx, k, now[k])
				if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
					return nil
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d objects are left", len(added))
}

// ownersFirst groups objects into waves. An object's owner is always in an earlier wave, because the owner's controller
// would otherwise recreate the object.
func ownersFirst(now inventory, keys []key) (waves [][]key) {
	of := map[types.UID]*unstructured.Unstructured{}
	for _, object := range now {
		of[object.GetUID()] = object
	}
	for _, k := range keys {
		depth := 0
		for owner := metav1.GetControllerOf(now[k]); owner != nil && of[owner.UID] != nil && depth < 5; depth++ {
			owner = metav1.GetControllerOf(of[owner.UID])
		}
		for len(waves) <= depth {
			waves = append(waves, nil)
		}
		waves[depth] = append(waves[depth], k)
	}
	return waves
}

// remove deletes an object and removes its finalizers.
func (c *Cluster) remove(ctx context.Context, k key, object *unstructured.Unstructured) error {
	if k.resource.Resource == "namespaces" && k.resource.Group == "" {
		return c.removeNamespace(ctx, k)
	}
	zero, background := int64(0), metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{GracePeriodSeconds: &zero, PropagationPolicy: &background}
	// Also delete objects that are already being deleted. A pod on a node that does not exist would otherwise wait
	// indefinitely.
	if err := c.of(k).Delete(ctx, k.name, options); err != nil {
		return err
	}
	if len(object.GetFinalizers()) > 0 {
		none := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := c.of(k).Patch(ctx, k.name, types.MergePatchType, none, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// removeNamespace finalizes and deletes an empty namespace. It leaves a namespace that is being deleted to the namespace
// controller. The controller could otherwise delete objects in a new namespace with the same name.
func (c *Cluster) removeNamespace(ctx context.Context, k key) error {
	current, err := c.of(k).Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	finalizers, _, _ := unstructured.NestedSlice(current.Object, "spec", "finalizers")
	if len(finalizers) > 0 && current.GetDeletionTimestamp() != nil {
		return nil
	}
	if len(finalizers) > 0 {
		unstructured.RemoveNestedField(current.Object, "spec", "finalizers")
		if _, err := c.of(k).Update(ctx, current, metav1.UpdateOptions{}, "finalize"); err != nil {
			return err
		}
	}
	for range 2 { // the first call marks the namespace as deleted, and the second removes it
		if err := c.of(k).Delete(ctx, k.name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// crowded reports whether a namespace contains more than the default objects. Objects in a deleted namespace cannot be
// patched, so the namespace must be deleted last.
func crowded(now inventory, namespace string) bool {
	for k := range now {
		came := (k.resource.Resource == "configmaps" && k.name == "kube-root-ca.crt") ||
			(k.resource.Resource == "serviceaccounts" && k.name == "default")
		if k.namespace == namespace && !came {
			return true
		}
	}
	return false
}

// restore recreates deleted objects and reverts changed ones.
func (c *Cluster) restore(ctx context.Context, now inventory, touched []key) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, k := range touched {
		was, is := c.baseline[k], now[k]
		if metav1.GetControllerOf(was) != nil {
			continue // its owner's controller restores it
		}
		if is != nil && equality.Semantic.DeepEqual(made(was), made(is)) {
			continue
		}
		group.Go(func() error { return c.put(ctx, k, was, is) })
	}
	return group.Wait()
}

func (c *Cluster) put(ctx context.Context, k key, was, is *unstructured.Unstructured) error {
	object := made(was)
	if is != nil {
		object.SetResourceVersion(is.GetResourceVersion())
		_, err := c.of(k).Update(ctx, object, metav1.UpdateOptions{FieldManager: manager})
		return err
	}
	_, err := c.of(k).Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
	return err
}

// made returns an object without status and without the metadata that the API server sets.
func made(object *unstructured.Unstructured) *unstructured.Unstructured {
	copied := object.DeepCopy()
	unstructured.RemoveNestedField(copied.Object, "status")
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(copied.Object, "metadata", field)
	}
	return copied
}
