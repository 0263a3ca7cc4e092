package liqo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
)

// sliceDoer asks for resources. Taking them back needs the provider: its copy goes
// first. Where the link names no provider, it is taken for gone for good, and
// Liqo is told so: then it lets go by itself.
//
// Source: liqotech/liqo cmd/liqoctl (force unpeer).
type sliceDoer struct{ vanishing }

// gone tells whether the link knows no provider any more.
func gone(e steps.Env) bool {
	_, err := e.Peer.Value("cluster-id")
	return errors.As(err, new(*steps.AbsentError))
}

// PlanUndo says what goes, and what is left for the other admin where the
// provider is not known.
func (d sliceDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.vanishing.PlanUndo(ctx, e)
	if err == nil {
		c.Along, err = along(ctx, e)
	}
	if err != nil || !deletes(c) || !gone(e) {
		return c, err
	}
	lost, err := lostClusters(ctx, e)
	if err != nil {
		return c, err
	}
	for _, fc := range lost {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Update, What: "ForeignCluster " + fc.GetName(), Hash: "lost:" + string(fc.GetUID()),
			Note: "the link names no provider: it is declared unreachable for good, so that Liqo waits for it no more",
		}, steps.Item{
			Verb: steps.Leave, What: "the provider " + fc.GetName(),
			Note: "left for its admin, in the namespace with label " + remoteIDLabel + " of this consumer: Tenant, RoleBinding, gateway, PublicKey, Configuration; carrick undo LINK --side remote does it there",
		})
		c.Rights = append(c.Rights, cluster.Right{Verb: "patch", Group: foreignClusters.Group, Resource: foreignClusters.Resource, Name: fc.GetName()})
	}
	return c, nil
}

// Undo tells Liqo that a provider is gone, then takes the slice back.
func (d sliceDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	plan, err := d.vanishing.PlanUndo(ctx, e)
	if err != nil {
		return err
	}
	if deletes(plan) && gone(e) {
		if err := declareLost(ctx, e, say); err != nil {
			return err
		}
	}
	if err := d.vanishing.Undo(ctx, e, say); err != nil {
		return fmt.Errorf("%w. The provider has to answer for this; is it gone for good, take remote out of the link file and undo again", err)
	}
	return nil
}

// lostClusters are the ForeignClusters of the providers that this action's slices
// are for.
func lostClusters(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	marked, err := e.Cluster.Find(ctx, resourceSlices, "", cluster.Selector{Labels: "carrick/link." + e.Link + "=" + e.Action})
	if err != nil {
		return nil, err
	}
	all, err := living(ctx, e, foreignClusters, "", "")
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, fc := range all {
		for _, s := range marked {
			if s.Labels[remoteIDLabel] == text(fc, "spec", "clusterID") {
				out = append(out, fc)
				break
			}
		}
	}
	return out, nil
}

func declareLost(ctx context.Context, e steps.Env, say steps.Progress) error {
	lost, err := lostClusters(ctx, e)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{unreachableNote: "true"}}})
	if err != nil {
		return err
	}
	for _, fc := range lost {
		if _, err := e.Cluster.Patch(ctx, foreignClusters, "", fc.GetName(), patch, cluster.PatchOptions{Manager: e.Manager(), UID: fc.GetUID()}); err != nil {
			return fmt.Errorf("declare ForeignCluster %s unreachable: %w", fc.GetName(), err)
		}
		say.Did(steps.Update, "ForeignCluster "+fc.GetName(), "")
	}
	return nil
}
