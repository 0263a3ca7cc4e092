package chart

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
)

// Plain is what a chart makes, for those who apply it without Helm: the objects
// in their namespaces, without Helm's marks.
type Plain struct {
	Version string
	CRDs    []*unstructured.Unstructured // of its crds folders
	Objects []*unstructured.Unstructured // in the order of installing
	Hooks   []*unstructured.Unstructured // what Helm would run before or after
	Unknown []string                     // given values that the chart does not know
}

// Template is what helm template makes for a cluster: its version and what it
// serves count, what stands there does not. Lookups find nothing, so a second
// time gives the same. Of req only Name, Namespace, Source, Chart, Version and
// Values count.
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
