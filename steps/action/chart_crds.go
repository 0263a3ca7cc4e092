package action

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/inventory"
)

var (
	crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	crdsAt  = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// definitions returns the CRDs that this action created from a chart's crds directory. Such CRDs are not part of the
// release, and Helm never deletes them.
func definitions(ctx context.Context, env steps.Env) ([]part, error) {
	list, err := env.Cluster.Find(ctx, crdsAt, "", cluster.Selector{Labels: steps.LinkLabel(env.Link) + "=" + env.Action})
	if apierrors.IsForbidden(err) {
		return nil, nil // a user who can't list CRDs can't have created one
	}
	if err != nil {
		return nil, fmt.Errorf("find CRDs with this link's label: %w", err)
	}
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, m := range list {
		p := part{found: findIn(inv, env.Action, m, crdKind, crdsAt)}
		if m.Annotations["meta.helm.sh/release-name"] != "" {
			continue // it is part of a release
		}
		if p.item, err = planUndo(ctx, env, p.found); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// sharedDefinitions returns the existing CRDs that other links have installed with a shared release. A link that joins
// the release also writes these CRDs. Otherwise undoing the first link would delete them.
func sharedDefinitions(
	ctx context.Context, env steps.Env, others map[string]string,
) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	seen := map[string]bool{}
	for _, link := range slices.Sorted(maps.Keys(others)) {
		list, err := env.Cluster.Find(ctx, crdsAt, "", cluster.Selector{Labels: steps.LinkLabel(link) + "=" + others[link]})
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("find CRDs that link %s created: %w", link, err)
		}
		for _, m := range list {
			if seen[m.Name] || m.Annotations["meta.helm.sh/release-name"] != "" {
				continue
			}
			seen[m.Name] = true
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(crdKind)
			o.SetName(m.Name)
			live, err := env.Cluster.Fetch(ctx, o)
			if err != nil {
				return nil, fmt.Errorf("read CRD %s: %w", m.Name, err)
			}
			o.Object["spec"] = live.Object["spec"]
			out = append(out, o)
		}
	}
	return out, nil
}

func planDefinitions(ctx context.Context, env steps.Env, others map[string]string, ch *steps.Change) error {
	crds, err := sharedDefinitions(ctx, env, others)
	if err != nil {
		return err
	}
	for _, o := range crds {
		p, err := planObject(ctx, env, o)
		if err != nil {
			return err
		}
		ch.Items, ch.Permissions = append(ch.Items, p.Item), append(ch.Permissions, p.rights...)
	}
	return nil
}
