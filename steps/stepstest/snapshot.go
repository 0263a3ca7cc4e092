package stepstest

import (
	"encoding/json"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps"
)

// passing are kinds that come and go by themselves.
var passing = []string{
	"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io", "endpoints",
	"pods.metrics.k8s.io", "nodes.metrics.k8s.io", "componentstatuses", "nodes",
}

// Snapshot is everything that both clusters hold, by side, kind and name,
// without what changes by itself and what a controller makes of something else;
// and of a side that is a machine its files and folders.
// It waits for namespaces that are on their way out, an earlier test's or this
// one's.
func Snapshot(t testing.TB, box *clustertest.Sandbox) map[string]string {
	t.Helper()
	out := map[string]string{}
	for side, root := range box.Hosts {
		for path, text := range Files(t, root) {
			out[side+" file "+path] = text
		}
	}
	for _, side := range steps.Sides {
		box.Settle(t, string(side))
		c := box.Open(t, string(side), cluster.Options{Once: true})
		kinds, err := c.Kinds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kinds {
			if !slices.Contains(k.Verbs, "list") || !slices.Contains(k.Verbs, "get") || slices.Contains(passing, k.GVR.GroupResource().String()) {
				continue
			}
			list, err := c.Find(t.Context(), k.GVR, "", cluster.Selector{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				t.Fatalf("list %s: %v", k.GVR, err)
			}
			for _, m := range list {
				if m.Name == "kube-root-ca.crt" || metav1.GetControllerOf(&m) != nil {
					continue
				}
				obj := &unstructured.Unstructured{}
				obj.SetGroupVersionKind(k.GVK)
				obj.SetNamespace(m.Namespace)
				obj.SetName(m.Name)
				live, err := c.Fetch(t.Context(), obj)
				if apierrors.IsNotFound(err) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				out[string(side)+" "+k.GVR.GroupResource().String()+" "+m.Namespace+"/"+m.Name] = plain(live)
			}
		}
	}
	return out
}

func plain(o *unstructured.Unstructured) string {
	for _, f := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	delete(o.Object, "status")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "deployment.kubernetes.io/revision") // how often it was rolled out
	b, _ := json.Marshal(o.Object)
	return string(b)
}
