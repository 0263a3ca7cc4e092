package liqo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// vanishing is a manifest whose undo also waits until Liqo has deleted the objects that Liqo created for the manifest's
// objects. Without the wait, later undo actions would delete objects that Liqo needs for this cleanup.
type vanishing struct {
	action.Manifest
	// children returns the objects that Liqo created for the manifest's objects.
	children func(context.Context, steps.Env) ([]child, error)
	// kinds lists the kinds of objects that undo searches for if the manifest's objects no longer exist.
	kinds []childKind
}

type childKind struct {
	gvr  schema.GroupVersionResource
	kind string
}

type child struct {
	gvr             schema.GroupVersionResource
	kind            string
	namespace, name string
	uid             types.UID
}

func (c child) String() string {
	if c.namespace != "" {
		return c.kind + " " + c.namespace + "/" + c.name
	}
	return c.kind + " " + c.name
}

func childrenOf(gvr schema.GroupVersionResource, kind string, objs []*unstructured.Unstructured) []child {
	var out []child
	for _, o := range objs {
		out = append(out, child{gvr, kind, o.GetNamespace(), o.GetName(), o.GetUID()})
	}
	return out
}

// dying returns the child objects in this link's tenant namespaces that are still being deleted. held[i] contains the
// finalizers of out[i].
func (v vanishing) dying(ctx context.Context, e steps.Env) (out []child, held []string, err error) {
	if len(v.kinds) == 0 {
		return nil, nil, nil
	}
	spaces, err := ownSpaces(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	for _, ns := range spaces {
		for _, k := range v.kinds {
			found, err := e.Cluster.Find(ctx, k.gvr, ns.Name, cluster.Selector{Labels: ownObjects})
			if errors.Is(err, failure.ErrNotServed) || apierrors.IsForbidden(err) {
				continue // Liqo deletes these objects, so undo must not require this permission
			}
			if err != nil {
				return nil, nil, err
			}
			for _, o := range found {
				if o.DeletionTimestamp != nil {
					out = append(out, child{k.gvr, k.kind, o.Namespace, o.Name, o.UID})
					held = append(held, clean.Text(check.OrNone(o.Finalizers)))
				}
			}
		}
	}
	return out, held, nil
}

// Undo deletes the objects and waits until Liqo has cleaned up after them.
func (v vanishing) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	plan, err := v.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return err
	}
	var left []child
	if deletes(plan) {
		left, err = v.children(ctx, e)
	} else {
		left, _, err = v.dying(ctx, e)
	}
	if err != nil {
		return fmt.Errorf("list the objects that Liqo created: %w", err)
	}
	if err := v.Manifest.Undo(ctx, e, say); err != nil {
		return err
	}
	for _, c := range left {
		say.Say("waiting until %s is deleted", c)
		if err := e.Cluster.Gone(ctx, c.gvr, c.namespace, c.name, c.uid); err != nil {
			err, _ = explainHeld(e, fmt.Errorf("%s still exists: %w", c, err))
			return err
		}
	}
	return nil
}

func deletes(c steps.Change) bool {
	for _, it := range c.Items {
		if it.Verb == steps.Delete {
			return true
		}
	}
	return false
}

// markedIn returns the namespaces in which this action created objects of resource gvr. It reads the inventory instead
// of the answers, because the answers might have changed since.
func markedIn(ctx context.Context, e steps.Env, gvr schema.GroupVersionResource) ([]string, error) {
	found, err := inventory.MadeBy(ctx, e, gvr, e.Action)
	var out []string
	for _, o := range found {
		out = append(out, o.Namespace)
	}
	return out, err
}

// ownedNetworks returns the Networks that Liqo created for this action's Configurations.
func ownedNetworks(ctx context.Context, e steps.Env) ([]child, error) {
	return inMarked(ctx, e, configurations, networks, "Network")
}

// sideConnections returns the Connections that Liqo created for this action's gateways.
func sideConnections(ctx context.Context, e steps.Env) ([]child, error) {
	var out []child
	for _, gateways := range []schema.GroupVersionResource{gatewayServers, gatewayClients} {
		found, err := inMarked(ctx, e, gateways, connections, "Connection")
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// sliceChildren returns the VirtualNodes of this action's slices and the Nodes of these VirtualNodes. It also returns
// the NamespaceMap, unless another slice for the same provider exists.
func sliceChildren(ctx context.Context, e steps.Env) ([]child, error) {
	virtual, err := inMarked(ctx, e, resourceSlices, virtualNodes, "VirtualNode")
	if err != nil {
		return nil, err
	}
	own, others, err := ownAndOtherSlices(ctx, e)
	if err != nil {
		return nil, err
	}
	virtual = slices.DeleteFunc(virtual, func(v child) bool { return !own[v.name] })
	var out []child
	if !others { // the NamespaceMap serves all slices of the namespace
		if out, err = inMarked(ctx, e, resourceSlices, namespaceMaps, "NamespaceMap"); err != nil {
			return nil, err
		}
	}
	out = append(out, virtual...)
	for _, v := range virtual {
		nodes, err := e.Cluster.Find(ctx, check.Nodes, "", cluster.Selector{Fields: "metadata.name=" + v.name})
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			if n.Labels[nodeTypeLabel] == virtualNodeType {
				out = append(out, child{check.Nodes, "Node", "", n.Name, n.UID})
			}
		}
	}
	return out, nil
}

// ownAndOtherSlices returns the names of this action's slices, which are also the names of the virtual nodes. others
// reports whether another slice for the same provider exists.
func ownAndOtherSlices(ctx context.Context, e steps.Env) (own map[string]bool, others bool, err error) {
	found, err := inventory.MadeBy(ctx, e, resourceSlices, e.Action)
	if err != nil {
		return nil, false, err
	}
	own = map[string]bool{}
	for _, o := range found {
		own[o.Name] = true
	}
	for _, o := range found {
		all, err := living(ctx, e, resourceSlices, o.Namespace, ownObjects)
		if err != nil {
			return nil, false, err
		}
		others = others || slices.ContainsFunc(all, func(s *unstructured.Unstructured) bool { return !own[s.GetName()] })
	}
	return own, others, nil
}

// ownObjects is a label selector that excludes the objects that the other side's Liqo copied here.
const ownObjects = replicatedLabel + "!=true"

// PlanUndo also lists the objects that an earlier, unfinished undo left behind. If a peering in the other direction
// uses the same tunnel, PlanUndo adds a note.
func (v vanishing) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := v.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	if !deletes(c) {
		left, held, err := v.dying(ctx, e)
		for i, o := range left {
			c.Items = append(c.Items, steps.Item{
				Verb: steps.Delete, What: o.String(), Hash: string(o.uid), Terminating: true,
				Note: "already being deleted, blocked by finalizers " + held[i] +
					". Liqo's controllers remove the finalizers, and carrick waits for that",
			})
		}
		return c, err
	}
	for _, kind := range []schema.GroupVersionResource{gatewayServers, gatewayClients} {
		spaces, err := markedIn(ctx, e, kind)
		if err != nil {
			return c, err
		}
		for _, ns := range spaces {
			other, err := reverse(ctx, e, ns)
			if err != nil {
				return c, err
			}
			for i := range c.Items {
				if other != "" && c.Items[i].Verb == steps.Delete {
					c.Items[i].Note = "the peering in the other direction uses this tunnel, too (" + other +
						"), and stops working without it. To undo only this peering: carrick undo LINK --step offloading, then --step " +
						"resources, then --step authentication"
				}
			}
		}
	}
	return c, nil
}

// reverse returns the kind and name of an object of a peering in the other direction, or "" if no such peering exists.
// Both directions share one pair of gateways (liqotech/liqo: pull request 2667).
func reverse(ctx context.Context, e steps.Env, namespace string) (string, error) {
	gvr, kind := resourceSlices, "ResourceSlice"
	if e.Side == steps.Local {
		gvr, kind = tenants, "Tenant"
	}
	found, err := living(ctx, e, gvr, namespace, ownObjects)
	if apierrors.IsForbidden(err) {
		return "", nil // the note is optional, so undo must not require this permission
	}
	if err != nil || len(found) == 0 {
		return "", err
	}
	return kind + " " + placeOf(found[0]), nil
}

// inMarked returns the objects of resource gvr in each namespace where this action created an object of resource
// marked. It excludes the objects that the other side's Liqo copied.
func inMarked(ctx context.Context, e steps.Env, marked, gvr schema.GroupVersionResource, kind string) ([]child, error) {
	spaces, err := markedIn(ctx, e, marked)
	if err != nil {
		return nil, err
	}
	var out []child
	for _, ns := range spaces {
		found, err := living(ctx, e, gvr, ns, ownObjects)
		if err != nil {
			return nil, err
		}
		out = append(out, childrenOf(gvr, kind, found)...)
	}
	return out, nil
}
