package world

import (
	"context"
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Revisions returns the keys of all objects in etcd, each with its revision, which is the object's resourceVersion.
type Revisions func(ctx context.Context) (map[string]string, error)

// cache contains the objects of each kind for as long as their keys in etcd show no change. With it, a reset of two
// unchanged clusters takes 0.05 s of CPU time instead of 0.45 s.
//
// The prefix of a kind's keys cannot be derived from the kind: Nodes, for example, are in /registry/minions. The cache
// learns it from the resourceVersion of an object, which only one key has. Kinds of which there has never been an
// object have no prefix yet. Their entries are valid for as long as nothing changes under any unknown prefix.
type cache struct {
	revisions Revisions
	kinds     map[schema.GroupVersionResource]entry
	// What etcd contained at the last refresh.
	keys   map[string]string // by resourceVersion
	hashes map[string]uint64 // by prefix; "" stands for all unknown prefixes
}

// entry contains the objects of a kind, and the hash of the keys and revisions under its prefix.
type entry struct {
	prefix  string
	hash    uint64
	objects inventory
}

var seed = maphash.MakeSeed()

// busy lists the prefixes under which Kubernetes components write continuously. They belong to volatile resources or to
// no resource.
var busy = []string{
	"/registry/events/", "/registry/leases/", "/registry/masterleases/", "/registry/services/endpoints/",
	"/registry/ipaddresses/", "/registry/controllerrevisions/", "/registry/ranges/",
}

// refresh reads the keys in etcd.
func (c *cache) refresh(ctx context.Context) error {
	revisions, err := c.revisions(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, e := range c.kinds {
		known[e.prefix] = true
	}
	c.keys, c.hashes = map[string]string{}, map[string]uint64{}
	for key, revision := range revisions {
		if slices.ContainsFunc(busy, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			continue
		}
		c.keys[revision] = key
		hash := maphash.String(seed, key+" "+revision)
		clusterScoped := path.Dir(key)
		namespaced := path.Dir(clusterScoped)
		c.hashes[clusterScoped] += hash // a sum, because the order of the keys does not matter
		c.hashes[namespaced] += hash
		if !known[clusterScoped] && !known[namespaced] {
			c.hashes[""] += hash
		}
	}
	return nil
}

// get returns the objects of a kind if nothing has changed since put.
func (c *cache) get(kind schema.GroupVersionResource) (objects inventory, ok bool) {
	e, ok := c.kinds[kind]
	if !ok || e.hash != c.hashes[e.prefix] {
		return nil, false
	}
	return e.objects, true
}

// put stores the objects of a kind that were listed after the last refresh. items are all of them, and objects those
// that get returns.
func (c *cache) put(kind schema.GroupVersionResource, items []unstructured.Unstructured, objects inventory) {
	if c.kinds == nil {
		c.kinds = map[schema.GroupVersionResource]entry{}
	}
	e := c.kinds[kind]
	for i := range items {
		name := "/" + items[i].GetName()
		if namespace := items[i].GetNamespace(); namespace != "" {
			name = "/" + namespace + name
		}
		if prefix, ok := strings.CutSuffix(c.keys[items[i].GetResourceVersion()], name); ok {
			e.prefix = prefix
			break
		}
	}
	if e.prefix == "" && len(items) > 0 { // created after the refresh, or stored elsewhere by an extension API server
		delete(c.kinds, kind)
		return
	}
	e.hash, e.objects = c.hashes[e.prefix], objects
	c.kinds[kind] = e
}
