// Package world holds what stands in the sandbox's clusters: YAML, a folder a
// side, for the base that both start with and for each scenario on top of it.
//
// Each set is applied under a field manager of its own: with one for all, a
// scenario that adds a label to a node would take away those of the base.
package world

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

//go:embed base scenarios
var files embed.FS

// manager is the field manager of the base; a scenario's has its name behind.
const manager = "sandbox"

// Cluster is one side's cluster as the world sees it.
type Cluster struct {
	Side     string // "local" or "remote"
	client   dynamic.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	discover discovery.DiscoveryInterface
	baseline inventory // what Remember saw
	based    bool      // Base was applied
}

// New returns the cluster of a side. It asks nothing of it yet.
func New(side string, config *rest.Config) (*Cluster, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))
	return &Cluster{Side: side, client: client, mapper: mapper, discover: discover}, nil
}

// Base applies what every cluster of a sandbox has.
func (c *Cluster) Base(ctx context.Context) error {
	c.based = true
	for _, folder := range []string{"base/both", path.Join("base", c.Side)} {
		if err := c.applyFolder(ctx, folder, manager); err != nil {
			return err
		}
	}
	return nil
}

// Scenarios returns the names of the scenarios.
func Scenarios() []string {
	entries, err := files.ReadDir("scenarios")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Seed applies this side's part of a scenario and the objects extra. A second
// time changes nothing.
func (c *Cluster) Seed(ctx context.Context, scenario string, extra ...*unstructured.Unstructured) error {
	owner := manager + "-" + scenario
	folder := path.Join("scenarios", scenario, c.Side)
	err := c.applyFolder(ctx, folder, owner)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, object := range extra {
		if err := c.apply(ctx, object, owner); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) applyFolder(ctx context.Context, folder, owner string) error {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		objects, err := Parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, object := range objects {
			if err := c.apply(ctx, object, owner); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// Parse returns the objects of a YAML stream in their order.
func Parse(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case object.Object != nil:
			objects = append(objects, object)
		}
	}
}

// apply applies an object, and its status where it has one.
func (c *Cluster) apply(ctx context.Context, object *unstructured.Unstructured, owner string) error {
	resource, err := c.resource(object)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: owner, Force: true}
	if _, err := resource.Apply(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if _, has := object.Object["status"]; !has {
		return nil
	}
	if _, err := resource.ApplyStatus(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("apply the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (c *Cluster) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.client.Resource(mapping.Resource), nil
	}
	return c.client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}
