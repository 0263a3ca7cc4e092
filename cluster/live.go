package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	segments "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/masked"
)

// Selector selects objects of a list by labels and fields, in the format of kubectl's -l and --field-selector.
type Selector struct{ Labels, Fields string }

// Secret is a Kubernetes Secret with only the values of the requested keys.
type Secret struct {
	Namespace, Name, UID, Type string
	Labels, Annotations        map[string]string
	Created                    time.Time
	Data                       map[string]masked.Value // values of the requested keys that exist
	Keys                       map[string]int          // size of the value of every key, in bytes
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Get returns the current state of one object. namespace is "" for a cluster-scoped object. The first call opens a
// watch on this object, and later calls are answered from memory. The trace of ctx records all calls. The object is
// shared, so callers must not change it. The object has no managedFields. In a Secret, Get replaces each value by
// "sha256:<12 hex> (<n> bytes)".
//
// Get returns one of these errors: the object does not exist (apierrors.IsNotFound), the API server does not serve the
// kind (failure.ErrNotServed), the request is refused (apierrors.IsForbidden, IsUnauthorized), the API server does not
// answer (*failure.StaleError, after at most Options.StaleAfter), the cluster was closed (failure.ErrClosed), or the
// cause of ctx.
func (c *Cluster) Get(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string,
) (*unstructured.Unstructured, error) {
	seen, err := c.read(ctx, readKey{gvr: gvr, namespace: namespace, name: name}, true)
	if err != nil {
		return nil, err
	}
	return seen.record.object, nil
}

// List returns the matching objects, sorted by namespace and name. namespace "" means all namespaces. The objects have
// the same form as those from Get. Callers must not change the objects or the slice. If the API server refuses the
// list, List returns an error and never an empty list.
func (c *Cluster) List(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, s Selector,
) ([]*unstructured.Unstructured, error) {
	seen, err := c.read(ctx, readKey{gvr: gvr, namespace: namespace, selector: s}, false)
	if err != nil {
		return nil, err
	}
	return seen.list, nil
}

// StartGet starts the request for a later call of Get. The request then runs concurrently with other requests. If the
// caller does not call Get, the request is wasted.
func (c *Cluster) StartGet(gvr schema.GroupVersionResource, namespace, name string) {
	c.start(readKey{gvr: gvr, namespace: namespace, name: name}, true)
}

// StartList is like StartGet, for later calls of List without a selector.
func (c *Cluster) StartList(namespace string, kinds ...schema.GroupVersionResource) {
	for _, gvr := range kinds {
		c.StartSelected(gvr, namespace, Selector{})
	}
}

// StartSelected is like StartGet, for a later call of List with the given selector.
func (c *Cluster) StartSelected(gvr schema.GroupVersionResource, namespace string, s Selector) {
	c.start(readKey{gvr: gvr, namespace: namespace, selector: s}, false)
}

// start starts a read without waiting for its result. A later call that waits for the read returns the error.
func (c *Cluster) start(key readKey, named bool) {
	if c == nil || key.check(named) != nil {
		return
	}
	if r, err := c.acquire(key); err == nil {
		c.release(r)
	}
}

// EveryKey requests the values of all keys of a Secret.
const EveryKey = "*"

// Secret returns a Secret with the masked values of the given keys. For other keys, it returns only the name and the
// size of the value. Keys that do not exist are missing from Data. Secret shares its watch with Get and returns the
// same errors.
func (c *Cluster) Secret(ctx context.Context, namespace, name string, keys ...string) (*Secret, error) {
	seen, err := c.read(ctx, readKey{gvr: secrets, namespace: namespace, name: name}, true, keys...)
	if err != nil {
		return nil, err
	}
	return seen.record.secret(keys), nil
}

// Secrets returns the matching Secrets, sorted by namespace and name. Each Secret has the masked values of the given
// keys (see Secret). Secrets shares its watch with List and returns the same errors.
func (c *Cluster) Secrets(ctx context.Context, namespace string, s Selector, keys ...string) ([]*Secret, error) {
	seen, err := c.read(ctx, readKey{gvr: secrets, namespace: namespace, selector: s}, false, keys...)
	if err != nil {
		return nil, err
	}
	var out []*Secret
	for i := range seen.records {
		out = append(out, seen.records[i].secret(keys))
	}
	return out, nil
}

func (r *record) secret(keys []string) *Secret {
	kind, _, _ := unstructured.NestedString(r.object.Object, "type")
	s := &Secret{
		Namespace:   r.object.GetNamespace(),
		Name:        r.object.GetName(),
		UID:         string(r.object.GetUID()),
		Type:        kind,
		Labels:      r.object.GetLabels(),
		Annotations: r.object.GetAnnotations(),
		Created:     r.object.GetCreationTimestamp().Time,
		Data:        map[string]masked.Value{},
		Keys:        maps.Clone(r.sizes),
	}
	for key, value := range r.kept {
		if slices.Contains(keys, key) || slices.Contains(keys, EveryKey) {
			s.Data[key] = value
		}
	}
	return s
}

func (c *Cluster) read(ctx context.Context, key readKey, named bool, keys ...string) (view, error) {
	if err := key.check(named); err != nil {
		return view{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return view{}, err
	}
	r, err := c.acquire(key, keys...)
	if err != nil {
		return view{}, err
	}
	defer c.release(r)
	return r.await(ctx, keys...)
}

// check returns an error if a part of the key is missing, or if a part would change the path of the request. If named
// is true, the key must have a name.
func (k readKey) check(named bool) error {
	if k.gvr.Version == "" || k.gvr.Resource == "" {
		return fmt.Errorf("read %q: the resource is not complete", k.gvr.String())
	}
	if named && k.name == "" {
		return fmt.Errorf("read %s: %w", k.gvr.Resource, errors.New("no name is given"))
	}
	for _, segment := range []string{k.gvr.Group, k.gvr.Version, k.gvr.Resource, k.namespace, k.name} {
		if problems := segments.IsPathSegmentName(segment); segment != "" && len(problems) > 0 {
			return fmt.Errorf("read %s %q: it %s", k.gvr.Resource, segment, problems[0])
		}
	}
	return nil
}
