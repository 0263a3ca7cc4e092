package stepstest

import (
	"encoding/json"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps"
)

// passing lists kinds whose objects are created and deleted automatically.
var passing = []string{
	"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io", "endpoints",
	"pods.metrics.k8s.io", "nodes.metrics.k8s.io", "componentstatuses", "nodes",
}

// Snapshot returns the content of both clusters by side, kind and name. It omits objects that controllers create and
// fields that change automatically. For a machine it returns the files and directories. It waits until namespaces that
// are being deleted are gone.
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
		before := len(out)
		for _, k := range kinds {
			name := k.GVR.GroupResource().String()
			if !slices.Contains(k.Verbs, "list") || !slices.Contains(k.Verbs, "get") || slices.Contains(passing, name) {
				continue
			}
			list, err := c.Dynamic().Resource(k.GVR).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list %s of side %s: %v", name, side, err)
			}
			for _, o := range list.Items {
				signer, _, _ := unstructured.NestedString(o.Object, "spec", "signerName") // each kubelet start creates new CSRs
				if o.GetName() == "kube-root-ca.crt" || metav1.GetControllerOf(&o) != nil ||
					signer == certificatesv1.KubeletServingSignerName {
					continue
				}
				out[string(side)+" "+name+" "+o.GetNamespace()+"/"+o.GetName()] = plain(&o)
			}
		}
		if len(out) == before {
			t.Fatalf("the cluster of side %s is empty", side)
		}
	}
	return out
}

func plain(o *unstructured.Unstructured) string {
	for _, f := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	delete(o.Object, "status")
	// The revision counts rollouts.
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	b, _ := json.Marshal(o.Object)
	return string(b)
}
