package liqo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// sliceDoer creates the ResourceSlice. On undo, Liqo first deletes the slice's copy on the provider, so the provider
// must respond. If the provider was removed from the link file, carrick annotates the provider's ForeignCluster as
// permanently unreachable, so that Liqo deletes the slice without the provider.
//
// Source: liqotech/liqo cmd/liqoctl (force unpeer).
type sliceDoer struct{ vanishing }

// gone reports whether the provider was removed from the link file. It returns false for a provider that merely does
// not respond or does not run Liqo.
func gone(e steps.Env) bool {
	_, err := e.Peer.Value(check.ServerFact)
	return steps.IsAbsent(err)
}

// PlanUndo adds to the plan the objects that Liqo deletes and, if the provider is gone, what the provider's admin must
// still undo.
func (d sliceDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.vanishing.PlanUndo(ctx, e)
	if err == nil {
		c.Along, err = along(ctx, e)
	}
	if err == nil {
		err = noteDeletedNamespaces(ctx, e, &c)
	}
	if err == nil {
		err = planLost(ctx, e, &c)
	}
	if err != nil || !deletes(c) || !gone(e) {
		return c, err
	}
	c.Items = append(c.Items, steps.Item{
		Verb: steps.Leave, What: "the provider's side",
		Note: "left for the provider's admin: the namespace with the label " + remoteIDLabel +
			" of this consumer, and everything in it. If carrick created it: carrick undo LINK --side remote",
	})
	return c, nil
}

// noteDeletedNamespaces adds a note to an undo plan about the namespaces that Liqo deletes on the provider. When the
// last slice is deleted, Liqo also deletes the NamespaceMap and the remote namespaces of all offloaded namespaces.
//
// Source: liqotech/liqo pkg/liqo-controller-manager/offloading (namespacemap-controller).
func noteDeletedNamespaces(ctx context.Context, e steps.Env, c *steps.Change) error {
	_, others, err := ownAndOtherSlices(ctx, e)
	if err != nil || others || !deletes(*c) {
		return err
	}
	spaces, err := markedIn(ctx, e, resourceSlices)
	if err != nil {
		return err
	}
	var there []string
	for _, ns := range spaces {
		maps, err := living(ctx, e, namespaceMaps, ns, ownObjects)
		if apierrors.IsForbidden(err) {
			return nil // the note is optional, so undo must not require this permission
		}
		if err != nil {
			return err
		}
		for _, m := range maps {
			current, _, _ := unstructured.NestedMap(m.Object, "status", "currentMapping")
			for own, v := range current {
				at, _ := v.(map[string]any)
				remote, _ := at["remoteNamespace"].(string)
				there = append(there, fmt.Sprintf("%s (local namespace %s)", cmp.Or(remote, "(none)"), own))
			}
		}
	}
	if len(there) == 0 {
		return nil
	}
	slices.Sort(there)
	for i := range c.Items {
		if c.Items[i].Verb == steps.Delete {
			c.Items[i].Note = "Liqo also deletes every offloaded namespace on the provider with its volumes, even if carrick " +
				"did not offload it: " + strings.Join(there, ", ")
		}
	}
	return nil
}

// Undo deletes the slice. If the provider is gone, Undo first annotates the provider's ForeignCluster as permanently
// unreachable.
func (d sliceDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	if err := declareLost(ctx, e, d.vanishing.PlanUndo, say); err != nil {
		return err
	}
	return stillReached(ctx, e, needsProvider(e, d.vanishing.Undo(ctx, e, say)))
}

// stillReached explains the timeout of an undo after the provider was removed from the link file: while the provider's
// API server still responds, Liqo ignores the annotation that declares the provider unreachable.
//
// Source: liqotech/liqo v1.2.0, pkg/utils/foreigncluster/conditions.go (IsDead).
func stillReached(ctx context.Context, e steps.Env, err error) error {
	if !gone(e) || !errors.As(err, new(*failure.StillThereError)) {
		return err
	}
	all, failed := ownForeignClusters(ctx, e)
	if failed != nil {
		return err
	}
	for _, fc := range all {
		reached := conditionOf(conditions(fc, "status", "conditions"), "APIServerStatus").status == "Established"
		if reached && fc.GetAnnotations()[unreachableNote] == "true" {
			return fmt.Errorf(
				"%w. Liqo still reaches the provider's API server (ForeignCluster %s: APIServerStatus is Established), so it "+
					"waits for the provider. Add remote to the link file and undo again", err, fc.GetName(),
			)
		}
	}
	return err
}

// offloadingDoer offloads a namespace. On undo, Liqo first deletes the corresponding namespace on the provider.
type offloadingDoer struct{ action.Manifest }

// Plan also shows which namespaces Liqo deletes on providers that the new labels no longer select.
//
// Source: liqotech/liqo pkg/liqo-controller-manager/offloading: namespaceoffloading-controller (the cluster selector
// decides which NamespaceMaps contain the namespace), namespacemap-controller (deletes the provider's namespaces that a
// NamespaceMap no longer requires).
func (d offloadingDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.Plan(ctx, e)
	i := slices.IndexFunc(c.Items, func(it steps.Item) bool { return it.Verb == steps.Update })
	if err != nil || i < 0 {
		return c, err
	}
	o, err := present(ctx, e, namespaceOffloadings, e.Answers.Text("offloading.namespace"), offloadingName)
	if err != nil || o == nil {
		return c, err
	}
	nodes, err := check.List[corev1.Node](
		ctx, e.Cluster, check.Nodes, "", cluster.Selector{Labels: nodeTypeLabel + "=" + virtualNodeType},
	)
	if err != nil {
		return c, err
	}
	if lost := leftOut(o, nodes, e.Answers.List("offloading.clusters")); len(lost) > 0 {
		c.Items[i].Note = fmt.Sprintf(
			"these labels no longer select %s, so Liqo deletes namespace %s there, including its volumes",
			check.OrNone(lost), clean.Text(text(o, "status", "remoteNamespaceName")),
		)
	}
	return c, nil
}

// leftOut returns the ids of the clusters to which the namespace is offloaded, but which the given labels no longer
// select.
func leftOut(o *unstructured.Unstructured, nodes []*corev1.Node, labels []string) (ids []string) {
	byCluster, _, _ := unstructured.NestedMap(o.Object, "status", "remoteNamespacesConditions")
	for id, about := range byCluster {
		conditions, _ := about.([]any)
		if conditionOf(conditionsOf(conditions), "OffloadingRequired").status == "False" {
			continue
		}
		if !slices.ContainsFunc(
			nodes, func(n *corev1.Node) bool { return n.Labels[remoteIDLabel] == id && hasAll(n.Labels, labels) },
		) {
			ids = append(ids, clean.Text(id))
		}
	}
	slices.Sort(ids)
	return ids
}

func hasAll(labels map[string]string, want []string) bool {
	return !slices.ContainsFunc(want, func(label string) bool {
		key, value, _ := strings.Cut(label, "=")
		return labels[key] != value
	})
}

// PlanUndo also shows that Liqo deletes the namespace on the provider.
func (d offloadingDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.PlanUndo(ctx, e)
	for i := range c.Items {
		if c.Items[i].Verb == steps.Delete {
			c.Items[i].Note = "Liqo also deletes the namespace on the provider, including its volumes"
		}
	}
	if err == nil {
		err = planLost(ctx, e, &c)
	}
	return c, err
}

// Undo deletes the NamespaceOffloading. If the provider is gone, Undo first annotates the provider's ForeignCluster as
// permanently unreachable.
func (d offloadingDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	if err := declareLost(ctx, e, d.Manifest.PlanUndo, say); err != nil {
		return err
	}
	err := needsProvider(e, d.Manifest.Undo(ctx, e, say))
	if still := (*failure.StillThereError)(nil); gone(e) && errors.As(err, &still) {
		return fmt.Errorf(
			"%w. Without the provider, Liqo releases the NamespaceOffloading once the ResourceSlice is deleted: carrick undo "+
				"%s --step resources",
			err, e.LinkFile(),
		)
	}
	return err
}

// needsProvider extends the error of an undo with the reason why Liqo is stuck. If the reason is unknown, it adds what
// to do if the provider no longer exists.
func needsProvider(e steps.Env, err error) error {
	if err == nil || gone(e) {
		return err
	}
	err, known := explainHeld(e, err)
	if known {
		return err
	}
	return fmt.Errorf(
		"%w. Liqo first deletes its counterpart on the provider. If the provider no longer exists, remove remote from the "+
			"link file and undo again",
		err,
	)
}

// planLost adds to an undo plan the ForeignClusters that carrick annotates as permanently unreachable. It changes the
// plan only if the provider is gone and the plan deletes an object.
func planLost(ctx context.Context, e steps.Env, c *steps.Change) error {
	if !deletes(*c) || !gone(e) {
		return nil
	}
	lost, err := lostClusters(ctx, e)
	for _, fc := range lost {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Update, What: "ForeignCluster " + fc.GetName(), Hash: "lost:" + string(fc.GetUID()),
			Note: "the link file has no provider, so carrick marks it as permanently unreachable and Liqo stops waiting for it",
		})
		c.Permissions = append(
			c.Permissions,
			permission.Rule{Verb: "patch", Group: foreignClusters.Group, Resource: foreignClusters.Resource, Name: fc.GetName()},
		)
	}
	return err
}

// lostClusters returns the ForeignClusters of the link's providers that are not yet annotated as unreachable.
func lostClusters(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	all, err := ownForeignClusters(ctx, e)
	return slices.DeleteFunc(
		all, func(fc *unstructured.Unstructured) bool { return fc.GetAnnotations()[unreachableNote] == "true" },
	), err
}

// ownForeignClusters returns the ForeignClusters of the providers whose cluster ids are in the labels of this link's
// slices and tenant namespaces.
func ownForeignClusters(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	marked, err := inventory.MadeBy(ctx, e, resourceSlices, "resource-slice")
	if err != nil {
		return nil, err
	}
	spaces, err := ownSpaces(ctx, e)
	if err != nil {
		return nil, err
	}
	marked = append(marked, spaces...)
	all, err := living(ctx, e, foreignClusters, "", "")
	return slices.DeleteFunc(all, func(fc *unstructured.Unstructured) bool {
		return !slices.ContainsFunc(
			marked, func(s inventory.Made) bool { return s.Labels[remoteIDLabel] == text(fc, "spec", "clusterID") },
		)
	}), err
}

// declareLost annotates the ForeignClusters of the link's providers as permanently unreachable, so that Liqo does not
// wait for the providers. It does so only if the provider is gone and the undo deletes an object.
func declareLost(
	ctx context.Context, e steps.Env, undo func(context.Context, steps.Env) (steps.Change, error), say steps.Progress,
) error {
	if !gone(e) {
		return nil
	}
	plan, err := undo(ctx, e)
	if err != nil || !deletes(plan) {
		return err
	}
	lost, err := lostClusters(ctx, e)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{unreachableNote: "true"}}},
	)
	if err != nil {
		return err
	}
	for _, fc := range lost {
		if _, err := e.Cluster.Patch(
			ctx, foreignClusters, "", fc.GetName(), patch, cluster.PatchOptions{Manager: e.Manager(), UID: fc.GetUID()},
		); err != nil {
			return fmt.Errorf("mark ForeignCluster %s as unreachable: %w", fc.GetName(), err)
		}
		say.Did(steps.Update, "ForeignCluster "+fc.GetName(), "")
	}
	return nil
}
