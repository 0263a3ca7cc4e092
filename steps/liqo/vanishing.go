package liqo

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// vanishing is a manifest whose undo is over only when what Liqo made of it is
// gone, too: what comes after would take away what Liqo needs to clean up.
type vanishing struct {
	steps.Manifest
	// children are what Liqo made of the objects, where they are.
	children func(context.Context, steps.Env) ([]child, error)
}

// child is an object that Liqo made.
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

// Undo takes back the objects and waits until Liqo has cleaned up after them.
func (v vanishing) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	plan, err := v.PlanUndo(ctx, e)
	if err != nil {
		return err
	}
	var left []child
	if deletes(plan) {
		if left, err = v.children(ctx, e); err != nil {
			return fmt.Errorf("look what Liqo made of them: %w", err)
		}
	}
	if err := v.Manifest.Undo(ctx, e, say); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, vanishWithin)
	defer cancel()
	for _, c := range left {
		say.Say("waiting until %s is gone", c)
		if err := e.Cluster.Gone(within, c.gvr, c.namespace, c.name, c.uid); err != nil {
			return fmt.Errorf("%s is still there: %w", c, err)
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

// markedIn is where this action's own objects stand: undo asks no
// answers, which may have changed.
func markedIn(ctx context.Context, e steps.Env, gvr schema.GroupVersionResource) ([]string, error) {
	found, err := e.Cluster.Find(ctx, gvr, "", e.Marked(e.Action))
	var out []string
	for _, o := range found {
		out = append(out, o.Namespace)
	}
	return out, err
}

// ownedNetworks are the Networks that Liqo makes of Configurations.
func ownedNetworks(ctx context.Context, e steps.Env) ([]child, error) {
	return inMarked(ctx, e, configurations, networks, "Network")
}

// sideConnections are the Connections of the gateways.
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

// sliceChildren are the virtual nodes of the slices' namespaces, the nodes that
// they stand for, and the map of namespaces.
func sliceChildren(ctx context.Context, e steps.Env) ([]child, error) {
	virtual, err := inMarked(ctx, e, resourceSlices, virtualNodes, "VirtualNode")
	if err != nil {
		return nil, err
	}
	out, err := inMarked(ctx, e, resourceSlices, namespaceMaps, "NamespaceMap")
	if err != nil {
		return nil, err
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

// inMarked are the objects of one resource in the namespaces where this action's
// objects of another stand.
func inMarked(ctx context.Context, e steps.Env, marked, gvr schema.GroupVersionResource, kind string) ([]child, error) {
	spaces, err := markedIn(ctx, e, marked)
	if err != nil {
		return nil, err
	}
	var out []child
	for _, ns := range spaces {
		found, err := living(ctx, e, gvr, ns, "")
		if err != nil {
			return nil, err
		}
		out = append(out, childrenOf(gvr, kind, found)...)
	}
	return out, nil
}
