package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"carrick/cluster"
	"carrick/cluster/failure"
)

// HelmManager is the field manager of Helm itself. carrick uses it to change a release that keeps another owner, so
// that the owner can still upgrade the release.
const HelmManager = "helm"

// write writes one object to the cluster.
func (r Request) write(ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured) error {
	if r.Write != nil {
		return r.Write(ctx, o)
	}
	if r.TakeOver {
		if err := r.inherit(ctx, c, o); err != nil {
			return err
		}
	}
	_, err := c.Apply(ctx, r.marked(o), cluster.ApplyOptions{Manager: r.Manager, Force: r.TakeOver})
	return err
}

// DryRun returns the existing object, or nil if there is none, and the object as server-side apply would leave it. It
// does not use Write.
func (r Request) DryRun(
	ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured,
) (live, after *unstructured.Unstructured, err error) {
	live, err = c.Fetch(ctx, o)
	if apierrors.IsNotFound(err) || errors.Is(err, failure.ErrNotServed) {
		return nil, r.marked(o), nil
	}
	if err != nil {
		return nil, nil, err
	}
	after, err = c.Apply(ctx, r.marked(o), cluster.ApplyOptions{Manager: r.Manager, Force: r.TakeOver, DryRun: true})
	return live, after, err
}

func (r Request) marked(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	put(o, maps.Clone(r.Labels), maps.Clone(r.Annotations))
	return o
}

// inherit transfers fields that Helm wrote without server-side apply to the manager, so that fields missing from the
// new version are removed. Helm 4 does the same.
func (r Request) inherit(ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured) error {
	live, err := c.Fetch(ctx, o)
	if apierrors.IsNotFound(err) || errors.Is(err, failure.ErrNotServed) {
		return nil
	}
	if err != nil {
		return err
	}
	was := append([]metav1.ManagedFieldsEntry(nil), live.GetManagedFields()...)
	if err := csaupgrade.UpgradeManagedFields(live, sets.New(HelmManager), r.Manager); err != nil {
		return fmt.Errorf("%s: its managed fields cannot be read: %w", describe(live), err)
	}
	if reflect.DeepEqual(was, live.GetManagedFields()) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": live.GetManagedFields()}})
	if err != nil {
		return err
	}
	gvr, _, err := c.Resource(ctx, live.GroupVersionKind())
	if err != nil {
		return err
	}
	_, err = c.Patch(ctx, gvr, live.GetNamespace(), live.GetName(), patch, cluster.PatchOptions{
		Manager: r.Manager, UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(),
	})
	return err
}
