package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// inTheWay are the resources that can refuse or hold up the deletion of
// others, so they go first.
var inTheWay = []string{
	"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicybindings",
	"mutatingadmissionpolicybindings", "apiservices",
}

// Reset brings the cluster back to what Remember saw: what is new is deleted
// whatever its finalizers say, what was changed or deleted is as it was.
// What controllers make for what is remembered is theirs.
func (c *Cluster) Reset(ctx context.Context) error {
	if c.baseline == nil {
		return errors.New("there is nothing to reset to")
	}
	err := Until(ctx, c.Side+" to be as it was", func() (bool, error) {
		now, err := c.list(ctx)
		if err != nil {
			return false, err
		}
		if added := c.added(now); len(added) > 0 {
			return false, c.sweep(ctx, now, added)
		}
		err = c.restore(ctx, now) // a conflict with a controller is tried again
		return err == nil, err
	})
	c.mapper.Reset()
	if err != nil {
		return err
	}
	if c.based { // for the statuses that belong to it
		if err := c.Base(ctx); err != nil {
			return err
		}
	}
	return c.Settle(ctx)
}

// added returns what is neither remembered nor made by a controller for what
// is. What is left of a remembered owner that was deleted counts as added.
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

// sweep deletes objects once. What is still there the next time is swept again.
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

// ownersFirst sorts objects so that each comes after the one that controls it, whose controller would replace it.
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

// remove deletes an object and takes its finalizers off.
func (c *Cluster) remove(ctx context.Context, k key, object *unstructured.Unstructured) error {
	if k.resource.Resource == "namespaces" && k.resource.Group == "" {
		return c.removeNamespace(ctx, k)
	}
	zero, background := int64(0), metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{GracePeriodSeconds: &zero, PropagationPolicy: &background}
	// Also when somebody has before: a pod whose node is gone waits for ever.
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

// leftAlone is how long the namespace controller has certainly not begun with a namespace that was deleted. It begins
// after five seconds (namespaceDeletionGracePeriod in kubernetes' pkg/controller/namespace/namespace_controller.go), of
// which a timestamp hides one; the rest is for what happens between the look and the removal.
const leftAlone = 2 * time.Second

// removeNamespace finalizes a namespace that is empty, then deletes it. One that
// the namespace controller may be deleting is left to it: taken from under it, it
// would go on deleting in the one that is made next.
func (c *Cluster) removeNamespace(ctx context.Context, k key) error {
	current, err := c.of(k).Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	finalizers, _, _ := unstructured.NestedSlice(current.Object, "spec", "finalizers")
	if at := current.GetDeletionTimestamp(); len(finalizers) > 0 && at != nil && time.Since(at.Time) > leftAlone {
		return nil
	}
	if len(finalizers) > 0 {
		unstructured.RemoveNestedField(current.Object, "spec", "finalizers")
		if _, err := c.of(k).Update(ctx, current, metav1.UpdateOptions{}, "finalize"); err != nil {
			return err
		}
	}
	for range 2 { // the first marks it, the second removes it
		if err := c.of(k).Delete(ctx, k.name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// crowded tells whether something is in a namespace that did not come with it.
// In a namespace that is gone nothing can be patched, so it goes last.
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

// restore makes again what is gone and puts back what was changed.
func (c *Cluster) restore(ctx context.Context, now inventory) error {
	group, ctx := errgroup.WithContext(ctx)
	for k, was := range c.baseline {
		if metav1.GetControllerOf(was) != nil {
			continue // its owner is what is remembered
		}
		is := now[k]
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

// made returns of an object what its makers said: neither its status nor what
// the API server adds.
func made(object *unstructured.Unstructured) *unstructured.Unstructured {
	copied := object.DeepCopy()
	unstructured.RemoveNestedField(copied.Object, "status")
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(copied.Object, "metadata", field)
	}
	return copied
}
