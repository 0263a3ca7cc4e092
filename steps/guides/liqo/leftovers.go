package liqo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

type leftover struct{ words, fix string }

// leftovers checks for objects of former peerings, including peerings with other clusters. It ignores live peerings,
// which have both a tenant namespace and a ForeignCluster.
func leftovers(ctx context.Context, e steps.Env) steps.Result {
	id, err := peerID(e)
	if err != nil && !steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	var spaces []*corev1.Namespace
	var foreign []*unstructured.Unstructured
	err = check.Together(
		func() (err error) {
			spaces, err = check.List[corev1.Namespace](
				ctx, e.Cluster, check.Namespaces, "", cluster.Selector{Labels: remoteIDLabel},
			)
			spaces = slices.DeleteFunc(spaces, forOffloading)
			return err
		},
		func() (err error) {
			foreign, err = e.Cluster.List(ctx, foreignClusters, "", cluster.Selector{})
			if errors.Is(err, failure.ErrNotServed) {
				return nil
			}
			return err
		},
	)
	if err != nil {
		return steps.Errored(err)
	}
	found := slices.Concat(lostSpaces(e, spaces, id), lostForeign(e, foreign, spaces, id))
	if len(found) == 0 {
		return steps.Passed(
			"%s and %s, all in use", steps.Plural(len(spaces), "tenant namespace"), steps.Plural(len(foreign), "ForeignCluster"),
		)
	}
	var words []string
	for _, l := range found {
		words = append(words, l.words)
	}
	return steps.Warned(some(words), found[0].fix)
}

// lostSpaces returns the tenant namespaces of other peerings that are stuck in deletion. The check tenant-namespace
// covers the namespace of this peering.
func lostSpaces(e steps.Env, spaces []*corev1.Namespace, id string) []leftover {
	var out []leftover
	for _, ns := range spaces {
		if ns.Labels[remoteIDLabel] == id || (ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceTerminating) {
			continue
		}
		out = append(out, leftover{
			fmt.Sprintf(
				"namespace %s, of a peering with %s, is being deleted%s", ns.Name, clean.Text(ns.Labels[remoteIDLabel]), heldBy(ns),
			),
			e.Kubectl() + " get namespace " + ns.Name +
				" -o jsonpath='{.status.conditions}'    # shows what blocks the deletion; liqoctl force unpeer removes a peering " +
				"whose other side no longer exists",
		})
	}
	return out
}

// lostForeign returns the ForeignClusters of other peerings if they have no tenant namespace. It also returns all
// ForeignClusters that are stuck in deletion. id is the peer's cluster id.
func lostForeign(e steps.Env, foreign []*unstructured.Unstructured, spaces []*corev1.Namespace, id string) []leftover {
	var out []leftover
	for _, fc := range foreign {
		of := text(fc, "spec", "clusterID")
		if of == "" {
			of = fc.GetName()
		}
		shown := "ForeignCluster " + fc.GetName()
		switch {
		case fc.GetDeletionTimestamp() != nil:
			out = append(out, leftover{
				fmt.Sprintf(
					"%s is being deleted, blocked by finalizers %s", shown, clean.Text(strings.Join(fc.GetFinalizers(), ", ")),
				),
				e.Kubectl() + " get foreignclusters.core.liqo.io " + fc.GetName() +
					" -o yaml    # Liqo's controller manager removes the finalizers; check that it runs",
			})
		case of != id &&
			!slices.ContainsFunc(spaces, func(ns *corev1.Namespace) bool { return ns.Labels[remoteIDLabel] == of }):
			out = append(out, leftover{
				shown + " has no tenant namespace, so its peering no longer exists",
				e.Kubectl() + " delete foreignclusters.core.liqo.io " + fc.GetName(),
			})
		}
	}
	return out
}
