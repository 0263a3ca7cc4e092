// Package world contains the objects in the sandbox's clusters as YAML, with one directory per side. Both clusters
// start with the base. Scenarios are applied on top of the base, and faults on top of a scenario.
//
// Each of these sets has its own field manager. With a common field manager, a scenario that adds a label to a node
// would remove the base's labels.
package world

import (
	"context"
	"fmt"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// manager is the field manager of the base.
const manager = "sandbox"

// absent is the annotation of an object that must not exist. A fault can use it to remove an object of its scenario.
const absent = "sandbox.carrick/absent"

const definition = "CustomResourceDefinition"

// Cluster is the cluster of one side.
type Cluster struct {
	Side     string // "local" or "remote"
	client   dynamic.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	discover discovery.DiscoveryInterface
	baseline inventory // recorded by Remember
	// clean contains the resourceVersions of the objects in baseline after the last Remember or Reset.
	clean  map[key]string
	based  bool   // Base has been applied
	values Values // for ${…} in the base
	cache  cache  // of list
}

// New returns the cluster of a side. revisions returns the keys in etcd. values are the values for ${…} in the
// base. New sends no requests.
func New(side string, config *rest.Config, revisions Revisions, values Values) (*Cluster, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))
	return &Cluster{
		Side: side, client: client, mapper: mapper, discover: discover, values: values, cache: cache{revisions: revisions},
	}, nil
}

// Base applies the objects that every sandbox cluster has.
func (c *Cluster) Base(ctx context.Context) error {
	c.based = true
	for _, folder := range []string{"base/both", path.Join("base", c.Side)} {
		objects, err := read(folder, c.values)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, manager, objects); err != nil {
			return err
		}
	}
	return nil
}

// Apply applies objects in order. owner is the field manager. Apply is idempotent. After a CustomResourceDefinition, it
// waits until the API server serves the new kind.
func (c *Cluster) Apply(ctx context.Context, owner string, objects []*unstructured.Unstructured) error {
	var defined []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == definition && object.GetAnnotations()[absent] == "" {
			defined = append(defined, object)
		} else if err := c.served(ctx, defined); err != nil {
			return err
		} else {
			defined = nil
		}
		if err := c.apply(ctx, object, owner); err != nil {
			return err
		}
	}
	return c.served(ctx, defined)
}

// apply applies an object and, if it has one, its status.
func (c *Cluster) apply(ctx context.Context, object *unstructured.Unstructured, owner string) error {
	resource, err := c.resource(object)
	if err != nil {
		return err
	}
	if object.GetAnnotations()[absent] != "" {
		if err := resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
	options := metav1.ApplyOptions{FieldManager: owner, Force: true}
	_, err = resource.Apply(ctx, object.GetName(), object, options)
	if apierrors.IsNotFound(err) && object.GetNamespace() != "" { // a fake creates the namespace later
		err = Until(ctx, "namespace "+object.GetNamespace()+" of "+c.Side, func() (bool, error) {
			_, err := resource.Apply(ctx, object.GetName(), object, options)
			return err == nil, err
		})
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	status, has := object.Object["status"].(map[string]any)
	if !has {
		return nil
	}
	if len(status) == 0 { // an empty status would become null, which CustomResourceDefinitions do not allow
		_, err := resource.Patch(
			ctx, object.GetName(), types.MergePatchType, []byte(`{"status":null}`), metav1.PatchOptions{FieldManager: owner},
			"status",
		)
		return err
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
