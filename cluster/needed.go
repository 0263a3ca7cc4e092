package cluster

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/permission"
)

// Need records permissions that the caller requires in addition to the permissions for its reads.
func (c *Cluster) Need(rights ...permission.Rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.needed == nil {
		c.needed = map[permission.Rule]bool{}
	}
	for _, r := range rights {
		c.needed[r] = true
	}
}

// WillRead records that the caller might later read objects of the given kind in the given namespaces ("": all
// namespaces). Needed then includes the optional permissions for these reads.
func (c *Cluster) WillRead(gvr schema.GroupVersionResource, namespaces ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.later == nil {
		c.later = map[permission.Rule]bool{}
	}
	for _, ns := range namespaces {
		c.later[permission.Rule{Group: gvr.Group, Resource: gvr.Resource, Namespace: ns}] = true
	}
}

// Noted returns the permissions that Need has recorded.
func (c *Cluster) Noted() []permission.Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.needed), comparePermissions)
}

// Needed returns the permissions that all reads so far require, including refused reads. It also returns the
// permissions that Need and WillRead have recorded.
func (c *Cluster) Needed() []permission.Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.needed)
	if all == nil {
		all = map[permission.Rule]bool{}
	}
	for kind := range c.later {
		for _, right := range permission.ToRead(kind) {
			all[right] = true
		}
	}
	for key := range c.reads {
		for _, right := range permission.ToRead(permission.Rule{
			Group: key.gvr.Group, Resource: key.gvr.Resource, Namespace: key.namespace,
		}) {
			all[right] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), comparePermissions)
}

func comparePermissions(a, b permission.Rule) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Name, b.Name),
	)
}
