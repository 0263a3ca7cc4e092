package world

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

type key struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// inventory contains the objects in a cluster that a user could have created.
type inventory map[key]*unstructured.Unstructured

// volatile lists the resources that Kubernetes components write continuously.
var volatile = []string{
	"events", "leases", "endpoints", "ipaddresses", "controllerrevisions", "podmetrics",
}

// written reports whether a Kubernetes component writes the object, although users can write the same resource. This
// applies to the EndpointSlices of Services with a selector, mirrored EndpointSlices, and the API server's own
// EndpointSlice. Reset must delete all other EndpointSlices. A user's EndpointSlice would otherwise outlive its
// namespace, and the API server would keep sending webhook calls to its addresses.
func written(resource schema.GroupVersionResource, object *unstructured.Unstructured) bool {
	return resource.Resource == "endpointslices" &&
		(object.GetLabels()[discoveryv1.LabelManagedBy] != "" || object.GetNamespace() == metav1.NamespaceDefault)
}

// Remember records the cluster's current objects for Reset.
func (c *Cluster) Remember(ctx context.Context) error {
	var err error
	c.baseline, err = c.list(ctx)
	c.cleaned(c.baseline)
	return err
}

// cleaned records the resourceVersions of the baseline's objects.
func (c *Cluster) cleaned(now inventory) {
	c.clean = map[key]string{}
	for k := range c.baseline {
		if object := now[k]; object != nil {
			c.clean[k] = object.GetResourceVersion()
		}
	}
}

// list returns all objects that can be listed and deleted. It lists the kinds of which an object has changed since the
// last call, all concurrently.
func (c *Cluster) list(ctx context.Context) (inventory, error) {
	if err := c.cache.refresh(ctx); err != nil {
		return nil, err
	}
	kinds, err := c.kinds()
	if err != nil {
		return nil, err
	}
	all := inventory{}
	kinds = slices.DeleteFunc(kinds, func(resource schema.GroupVersionResource) bool {
		same, ok := c.cache.get(resource)
		maps.Copy(all, same)
		return ok
	})
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, resource := range kinds {
		group.Go(func() error {
			list, err := c.client.Resource(resource).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsServiceUnavailable(err) {
				return nil // the kind was removed after discovery
			}
			if err != nil {
				return err
			}
			found := inventory{}
			for i := range list.Items {
				object := &list.Items[i]
				if written(resource, object) {
					continue
				}
				found[key{resource, object.GetNamespace(), object.GetName()}] = object
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(all, found)
			c.cache.put(resource, list.Items, found)
			return nil
		})
	}
	return all, group.Wait()
}

func (c *Cluster) kinds() ([]schema.GroupVersionResource, error) {
	lists, err := c.discover.ServerPreferredResources()
	if len(lists) == 0 && err != nil {
		return nil, err // if there are groups, the error is about an unavailable aggregated API
	}
	var kinds []schema.GroupVersionResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(volatile, r.Name) && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
				kinds = append(kinds, version.WithResource(r.Name))
			}
		}
	}
	return kinds, nil
}

func (c *Cluster) of(k key) dynamic.ResourceInterface {
	if k.namespace == "" {
		return c.client.Resource(k.resource)
	}
	return c.client.Resource(k.resource).Namespace(k.namespace)
}
