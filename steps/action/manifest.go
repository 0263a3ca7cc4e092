package action

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/steps"
)

// Manifest applies the objects of an asset by server-side apply. Each link and action has its own field manager.
type Manifest struct {
	File   string // in the guide's assets directory
	Values Values // computed values for ${values.name}
	// Each returns the items for which the asset is rendered, once per item. ${each} is the item. If the item is a map,
	// ${each.key} is one of its values. If Each is nil, the asset is rendered once.
	Each func(context.Context, steps.Env) ([]any, error)
	// Version returns the API version in which the objects are written. Set it if clusters might not serve the asset's
	// version. If Version is nil, the asset's version is used.
	Version func(context.Context, steps.Env) (string, error)
}

// Asset returns m. A Doer that embeds a Manifest is therefore rendered, validated and exported like a Manifest.
func (m Manifest) Asset() Manifest { return m }

// Plan compares each object with a server-side dry run.
func (m Manifest) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	objs, err := m.Objects(ctx, env)
	if err != nil {
		return steps.Change{}, err
	}
	var c steps.Change
	for _, obj := range objs {
		p, err := planObject(ctx, env, obj)
		if err != nil {
			return c, err
		}
		c.Items = append(c.Items, p.Item)
		c.Permissions = append(c.Permissions, p.rights...)
	}
	return c, nil
}

// Do applies each object that differs.
func (m Manifest) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	objs, err := m.Objects(ctx, env)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		if err := doObject(ctx, env, obj, say); err != nil {
			return err
		}
	}
	return nil
}

// Objects renders the asset. If an answer's default could not be read, Objects returns an error. Dropping its key would
// render a wrong manifest.
func (m Manifest) Objects(ctx context.Context, env steps.Env) ([]*unstructured.Unstructured, error) {
	objs, err := m.rendered(ctx, env)
	if err != nil || m.Version == nil {
		return objs, err
	}
	version, err := m.Version(ctx, env)
	for _, o := range objs {
		gv := schema.GroupVersion{Group: o.GroupVersionKind().Group, Version: version}
		o.SetAPIVersion(gv.String())
	}
	return objs, err
}

// rendered renders the asset without applying m.Version.
func (m Manifest) rendered(ctx context.Context, env steps.Env) ([]*unstructured.Unstructured, error) {
	if env.Cluster == nil {
		return nil, fmt.Errorf("asset %s: the %s is not a cluster", m.File, env.SideName())
	}
	s := scope{env: env, values: m.Values}
	if m.Each == nil {
		objs, err := render(ctx, m.File, s)
		return objs, errors.Join(err, env.Sound())
	}
	items, err := m.Each(ctx, env)
	if err := errors.Join(err, env.Sound()); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, s.each = range items {
		objs, err := render(ctx, m.File, s)
		if err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, env.Sound()
}
