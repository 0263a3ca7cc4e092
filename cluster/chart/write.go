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

// HelmManager is the field manager of Helm itself. carrick uses this manager when it changes a release that still
// belongs to another owner. The owner can then upgrade the release without conflicts.
const HelmManager = "helm"

// write calls r.Write if it is set. Otherwise it applies the object.
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

// DryRun returns the existing object (nil if it does not exist), and the result of a dry run of server-side apply. It
// does not call Write.
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

// inherit transfers the fields that Helm wrote with client-side apply to the request's manager. Then server-side apply
// removes fields that the new version no longer has. Helm 4 does the same.
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
