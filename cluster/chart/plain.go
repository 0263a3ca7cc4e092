package chart

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
)

// Plain is a rendered chart for users who apply it without Helm. The objects have namespaces, but no Helm labels and
// annotations.
type Plain struct {
	Version string
	CRDs    []*unstructured.Unstructured // from the chart's crds directories
	Objects []*unstructured.Unstructured // in install order
	Hooks   []*unstructured.Unstructured // objects that Helm would create before or after Objects
	Unknown []string                     // values that were set and that the chart does not use
}

// Template renders a chart for a cluster, like helm template. It uses the cluster's version and API resources but not
// its objects: lookups find nothing, so that the result is repeatable. It uses only the fields Name, Namespace, Source,
// Chart, Version and Values of req.
func Template(ctx context.Context, c *cluster.Cluster, req Request) (*Plain, error) {
	quiet()
	ch, err := load(ctx, req)
	if err != nil {
		return nil, err
	}
	r, err := render(ctx, c, nil, ch, options(req.Name, req.Namespace, 1), req.Values)
	if err != nil {
		return nil, err
	}
	out := &Plain{Version: ch.Version(), CRDs: r.CRDs, Unknown: r.Unknown}
	if out.Objects, err = unmarked(ctx, c, r.Objects, r.CRDs, req.Name, req.Namespace); err != nil {
		return nil, err
	}
	for _, h := range r.hooks {
		made, err := objects(h.Manifest)
		if err != nil {
			return nil, fmt.Errorf("chart %s: hook %s: %w", ch.Name(), clean.Text(h.Path), err)
		}
		out.Hooks = append(out.Hooks, made...)
	}
	return out, nil
}
