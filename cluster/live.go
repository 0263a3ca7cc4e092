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

// Selector narrows a list, in the notation of kubectl's -l and --field-selector.
type Selector struct{ Labels, Fields string }

// Secret is a Secret of which only what was asked for is kept.
type Secret struct {
	Namespace, Name, UID, Type string
	Labels, Annotations        map[string]string
	Created                    time.Time
	Data                       map[string]masked.Value // the keys that were asked for and exist
	Keys                       map[string]int          // every key and the size of its value
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Get returns one object as it is now; namespace is "" for what has none. The
// first call opens a watch on that object alone, later ones are answered from
// memory, and all are recorded in the trace of ctx. Callers must not change the
// object: it is shared. It has no managedFields, and the values of a Secret are
// replaced by "sha256:<12 hex> (<n> bytes)".
//
// The error is one of: no such object (apierrors.IsNotFound), no such kind
// (failure.ErrNotServed), refused (apierrors.IsForbidden, IsUnauthorized), no answer
// (*failure.StaleError, after Options.Patience at the latest), failure.ErrClosed, or the cause
// of ctx.
func (c *Cluster) Get(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string,
) (*unstructured.Unstructured, error) {
	seen, err := c.read(ctx, readKey{gvr: gvr, namespace: namespace, name: name}, true)
	if err != nil {
		return nil, err
	}
	return seen.record.object, nil
}

// List returns the objects that match, sorted by namespace and name; namespace
// "" means all namespaces. What holds for Get holds for List: callers must not
// change the objects or the slice, and a refused list is an error, never empty.
func (c *Cluster) List(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string, s Selector,
) ([]*unstructured.Unstructured, error) {
	seen, err := c.read(ctx, readKey{gvr: gvr, namespace: namespace, selector: s}, false)
	if err != nil {
		return nil, err
	}
	return seen.list, nil
}

// StartGet starts a read that Get is going to wait for, so that it runs while others are waited for. It must be one
// that the caller needs in any case: without a Get it is a request for nothing.
func (c *Cluster) StartGet(gvr schema.GroupVersionResource, namespace, name string) {
	c.start(readKey{gvr: gvr, namespace: namespace, name: name}, true)
}

// StartList starts reads that List is going to wait for, without a selector, as StartGet does.
func (c *Cluster) StartList(namespace string, kinds ...schema.GroupVersionResource) {
	for _, gvr := range kinds {
		c.StartSelected(gvr, namespace, Selector{})
	}
}

// StartSelected starts a read that List is going to wait for, as StartGet does.
func (c *Cluster) StartSelected(gvr schema.GroupVersionResource, namespace string, s Selector) {
	c.start(readKey{gvr: gvr, namespace: namespace, selector: s}, false)
}

// start starts a read that is not waited for. Why it can't be read is told to whoever waits.
func (c *Cluster) start(key readKey, named bool) {
	if c == nil || key.check(named) != nil {
		return
	}
	if r, err := c.acquire(key); err == nil {
		c.release(r)
	}
}

// EveryKey, asked for as a key of a Secret, stands for all that it has.
const EveryKey = "*"

// Secret returns a Secret with the values of the given keys, wrapped; of the
// others only name and size are known. A key that does not exist is missing in
// Data. It shares its watch with Get; its errors are Get's.
func (c *Cluster) Secret(ctx context.Context, namespace, name string, keys ...string) (*Secret, error) {
	seen, err := c.read(ctx, readKey{gvr: secrets, namespace: namespace, name: name}, true, keys...)
	if err != nil {
		return nil, err
	}
	return seen.record.secret(keys), nil
}

// Secrets returns the Secrets that match, sorted by namespace and name, each
// with the values of the given keys, as Secret does. It shares its watch with
// List; its errors are List's.
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

// secret is what a record keeps of a Secret, with those keys.
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

// check refuses what would ask for something else than it says.
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
