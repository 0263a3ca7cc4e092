package liqo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// tenantSpaceDoer creates the tenant namespace. Undo also deletes the ForeignCluster, which
// Liqo leaves behind after a peering.
type tenantSpaceDoer struct{ action.Manifest }

// Plan reports a conflict if the namespace is unproved (see unprovedSpace). The admin must confirm it like a conflict
// with another field manager.
func (d tenantSpaceDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	if err := oneOfPeer(ctx, e); err != nil {
		return steps.Change{}, err
	}
	ns, err := unproved(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	c, err := d.Manifest.Plan(ctx, e)
	if ns == nil || err != nil {
		return c, err
	}
	for i := range c.Items {
		c.Items[i].Conflicts = append(c.Items[i].Conflicts, ns.claim())
		note := ns.found(e) + "; take the namespace over only if the " + e.PeerName() + "'s admin confirms that id"
		c.Items[i].Note = steps.JoinNotes(c.Items[i].Note, note)
	}
	return c, nil
}

// Do returns a conflict if the namespace is unproved and the admin has not confirmed the takeover.
func (d tenantSpaceDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if err := oneOfPeer(ctx, e); err != nil {
		return err
	}
	ns, err := unproved(ctx, e)
	if err != nil {
		return err
	}
	if ns != nil && !e.Apply.TakeOver {
		return &action.ConflictError{What: "Namespace " + ns.name, Conflicts: []failure.Conflict{ns.claim()}}
	}
	return d.Manifest.Do(ctx, e, say)
}

// PlanUndo adds the ForeignCluster if this undo deletes the namespace, or if an unfinished undo already deleted it.
func (d tenantSpaceDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	left, err := leftoverForeignClusters(ctx, e, deletes(c))
	if err != nil {
		return c, err
	}
	for _, fc := range left {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Delete, What: "ForeignCluster " + fc.GetName(), Hash: string(fc.GetUID()),
			Note: "Liqo does not delete it",
		})
		for _, verb := range []string{"patch", "delete"} {
			c.Permissions = append(
				c.Permissions,
				permission.Rule{Verb: verb, Group: foreignClusters.Group, Resource: foreignClusters.Resource, Name: fc.GetName()},
			)
		}
	}
	return c, nil
}

// Undo waits until Liqo has deleted its own objects in the namespace, then deletes the namespace, and finally the
// ForeignCluster. In another order, Liqo would recreate the ForeignCluster. Undo labels the ForeignCluster before it
// deletes the namespace, because afterwards nothing else shows that the ForeignCluster belongs to this link.
func (d tenantSpaceDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	if err := cleaned(ctx, e, say); err != nil {
		return err
	}
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return err
	}
	left, err := leftoverForeignClusters(ctx, e, deletes(c))
	if err != nil {
		return err
	}
	if deletes(c) {
		if err := markLeft(ctx, e, left); err != nil {
			return err
		}
	}
	if err := d.Manifest.Undo(ctx, e, say); err != nil {
		return err
	}
	for _, fc := range left {
		if err := e.Cluster.Delete(ctx, foreignClusters, "", fc.GetName(), fc.GetUID()); err != nil {
			return fmt.Errorf("delete ForeignCluster %s: %w", fc.GetName(), err)
		}
		if err := e.Cluster.Gone(ctx, foreignClusters, "", fc.GetName(), fc.GetUID()); err != nil {
			return err
		}
		say.Did(steps.Delete, "ForeignCluster "+fc.GetName(), "")
	}
	return nil
}

// markLeft sets this action's label on ForeignClusters, so that a later undo finds them after the namespace is deleted.
func markLeft(ctx context.Context, e steps.Env, left []*unstructured.Unstructured) error {
	key, value, _ := strings.Cut(e.OwnedBy(e.Action).Labels, "=")
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}})
	if err != nil {
		return err
	}
	for _, fc := range left {
		if fc.GetLabels()[key] == value {
			continue
		}
		_, err := e.Cluster.Patch(
			ctx, foreignClusters, "", fc.GetName(), patch, cluster.PatchOptions{Manager: e.Manager(), UID: fc.GetUID()},
		)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("label ForeignCluster %s: %w", fc.GetName(), err)
		}
	}
	return nil
}

// leftoverForeignClusters returns the ForeignClusters that remain after this action's namespaces are deleted. It finds
// them by the cluster id in the namespaces' labels, because the peer might be gone. It also returns ForeignClusters
// that an earlier undo labelled, unless a namespace with their cluster id exists again. goes must be true if this undo
// deletes the namespaces.
func leftoverForeignClusters(ctx context.Context, e steps.Env, goes bool) ([]*unstructured.Unstructured, error) {
	all, err := e.Cluster.List(ctx, foreignClusters, "", cluster.Selector{})
	if errors.Is(err, failure.ErrNotServed) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	spaces, err := e.Cluster.Find(ctx, check.Namespaces, "", cluster.Selector{Labels: remoteIDLabel})
	if err != nil {
		return nil, err
	}
	own, err := ownSpaces(ctx, e)
	if err != nil {
		return nil, err
	}
	key, value, _ := strings.Cut(e.OwnedBy(e.Action).Labels, "=")
	var out []*unstructured.Unstructured
	for _, fc := range all {
		of := func(labels map[string]string) bool {
			id := labels[remoteIDLabel]
			return id != "" && text(fc, "spec", "clusterID") == id
		}
		marked := fc.GetLabels()[key] == value &&
			!slices.ContainsFunc(spaces, func(ns metav1.PartialObjectMetadata) bool { return of(ns.Labels) })
		if marked || (goes && slices.ContainsFunc(own, func(ns inventory.Made) bool { return of(ns.Labels) })) {
			out = append(out, fc)
		}
	}
	return out, nil
}
