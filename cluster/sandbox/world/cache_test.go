package world

import (
	"context"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind is listed again if, and only if, one of its objects could have changed.
func TestTheCacheNoticesEachChange(t *testing.T) {
	pods, nodes := schema.GroupVersionResource{Resource: "pods"}, schema.GroupVersionResource{Resource: "nodes"}
	widgets := schema.GroupVersionResource{Group: "example.org", Resource: "widgets"} // there are none
	before := map[string]string{
		"/registry/pods/a/p": "5", "/registry/pods/b/p": "6", "/registry/minions/n": "7", "/registry/leases/a/l": "8",
	}
	for name, test := range map[string]struct {
		write, remove           map[string]string
		pods, nodes, widgetsToo bool
	}{
		"nothing":                  {},
		"a heartbeat":              {write: map[string]string{"/registry/leases/a/l": "9"}},
		"a written pod":            {write: map[string]string{"/registry/pods/a/p": "9"}, pods: true},
		"a new pod":                {write: map[string]string{"/registry/pods/a/q": "9"}, pods: true},
		"a pod in a new place":     {write: map[string]string{"/registry/pods/c/p": "9"}, pods: true},
		"a deleted pod":            {remove: map[string]string{"/registry/pods/a/p": "5"}, pods: true},
		"the last node":            {remove: map[string]string{"/registry/minions/n": "7"}, nodes: true},
		"a written node":           {write: map[string]string{"/registry/minions/n": "9"}, nodes: true},
		"the first of a kind":      {write: map[string]string{"/registry/example.org/widgets/a/w": "9"}, widgetsToo: true},
		"the first cluster-scoped": {write: map[string]string{"/registry/example.org/widgets/w": "9"}, widgetsToo: true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := maps.Clone(before)
			c := cache{revisions: func(context.Context) (map[string]string, error) { return stored, nil }}
			pod := func(namespace, version string) unstructured.Unstructured { return object(namespace, "p", version) }
			for range 2 { // the first time teaches the prefixes
				if err := c.refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				c.put(pods, []unstructured.Unstructured{pod("a", "5"), pod("b", "6")}, inventory{{resource: pods}: nil})
				c.put(nodes, []unstructured.Unstructured{object("", "n", "7")}, inventory{})
				c.put(widgets, nil, inventory{})
			}
			maps.Copy(stored, test.write)
			maps.DeleteFunc(stored, func(key, _ string) bool { return test.remove[key] != "" })
			if err := c.refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			for kind, changed := range map[schema.GroupVersionResource]bool{
				pods: test.pods, nodes: test.nodes, widgets: test.widgetsToo,
			} {
				if _, same := c.get(kind); same == changed {
					t.Errorf("%s: cached is %t", kind.Resource, same)
				}
			}
		})
	}
}

// Objects that etcd does not hold, such as those of an extension API server, are listed each time.
func TestTheCacheKeepsNothingThatIsStoredElsewhere(t *testing.T) {
	c := cache{revisions: func(context.Context) (map[string]string, error) { return map[string]string{}, nil }}
	if err := c.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionResource{Group: "metrics.k8s.io", Resource: "nodes"}
	c.put(kind, []unstructured.Unstructured{object("", "n", "1")}, inventory{})
	if _, same := c.get(kind); same {
		t.Error("it was kept")
	}
}

func object(namespace, name, version string) unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetResourceVersion(version)
	return o
}
