package liqo

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
)

// tenantSpaceDoer makes the tenant namespace. With it goes, on undo, what Liqo
// itself leaves behind of a peering that is over: the ForeignCluster.
type tenantSpaceDoer struct{ steps.Manifest }

// PlanUndo adds the ForeignCluster where the namespace goes.
func (d tenantSpaceDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err != nil || !deletes(c) {
		return c, err
	}
	left, err := leftOver(ctx, e)
	if err != nil {
		return c, err
	}
	for _, fc := range left {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Delete, What: "ForeignCluster " + fc.GetName(), Hash: string(fc.GetUID()), Note: "Liqo leaves it behind",
		})
		c.Rights = append(c.Rights, cluster.Right{Verb: "delete", Group: foreignClusters.Group, Resource: foreignClusters.Resource, Name: fc.GetName()})
	}
	return c, nil
}

// Undo deletes the namespace once Liqo has cleaned up in it, then the
// ForeignCluster: while a namespace is there Liqo makes it anew.
func (d tenantSpaceDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	if err := cleaned(ctx, e, say); err != nil {
		return err
	}
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return err
	}
	var left []*unstructured.Unstructured
	if deletes(c) {
		if left, err = leftOver(ctx, e); err != nil {
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
		within, cancel := context.WithTimeout(ctx, vanishWithin)
		err := e.Cluster.Gone(within, foreignClusters, "", fc.GetName(), fc.GetUID())
		cancel()
		if err != nil {
			return err
		}
		say.Did(steps.Delete, "ForeignCluster "+fc.GetName(), "")
	}
	return nil
}

// leftOver are the ForeignClusters of the namespaces that this action made: by the
// id that those carry, for the peer may be gone.
func leftOver(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	spaces, err := ownSpaces(ctx, e)
	if err != nil {
		return nil, err
	}
	all, err := e.Cluster.List(ctx, foreignClusters, "", cluster.Selector{})
	if errors.Is(err, cluster.ErrNotServed) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, fc := range all {
		for _, ns := range spaces {
			if id := ns.Labels[remoteIDLabel]; id != "" && text(fc, "spec", "clusterID") == id {
				out = append(out, fc)
			}
		}
	}
	return out, nil
}
