package stepstest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		var names []string
		resources := map[schema.GroupVersionKind]string{}
		for _, k := range kinds {
			name := k.GVR.GroupResource().String()
			if slices.Contains(k.Verbs, "list") && slices.Contains(k.Verbs, "get") && !slices.Contains(passing, name) {
				names = append(names, name)
				resources[k.GVK] = name
			}
		}
		for _, o := range everyObject(t, box, side, names) {
			if o.GetName() == "kube-root-ca.crt" || metav1.GetControllerOf(&o) != nil {
				continue
			}
			out[string(side)+" "+resources[o.GroupVersionKind()]+" "+o.GetNamespace()+"/"+o.GetName()] = plain(&o)
		}
	}
	return out
}

// everyObject lists all objects of these resources, one request each.
func everyObject(t testing.TB, box *clustertest.Sandbox, side steps.Side, resources []string) []unstructured.Unstructured {
	t.Helper()
	text := box.Run(t, string(side), "", "get", strings.Join(resources, ","), "--all-namespaces", "-o", "json")
	var list struct{ Items []unstructured.Unstructured }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		t.Fatalf("the cluster of side %s holds nothing: kubectl get listed no object", side)
	}
	return list.Items
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
