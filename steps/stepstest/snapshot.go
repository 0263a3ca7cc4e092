package stepstest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
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
		found := objects(t, box.Open(t, string(side), cluster.Options{Once: true}))
		if len(found) == 0 {
			t.Fatalf("the cluster of side %s is empty", side)
		}
		for name, text := range found {
			out[string(side)+" "+name] = text
		}
	}
	return out
}

// objects returns the objects of a cluster by kind and name. It lists all kinds at once: the first list of a custom
// resource takes a second, because the API server prepares its cache for it and makes the client try again.
func objects(t testing.TB, c *cluster.Cluster) map[string]string {
	t.Helper()
	kinds, err := c.Kinds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	out := map[string]string{}
	group, ctx := errgroup.WithContext(t.Context())
	for _, k := range kinds {
		name := k.GVR.GroupResource().String()
		if !slices.Contains(k.Verbs, "list") || !slices.Contains(k.Verbs, "get") || slices.Contains(passing, name) {
			continue
		}
		group.Go(func() error {
			list, err := c.Dynamic().Resource(k.GVR).List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("list %s: %w", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, o := range list.Items {
				signer, _, _ := unstructured.NestedString(o.Object, "spec", "signerName") // each kubelet start creates new CSRs
				if o.GetName() == "kube-root-ca.crt" || metav1.GetControllerOf(&o) != nil ||
					signer == certificatesv1.KubeletServingSignerName {
					continue
				}
				out[name+" "+o.GetNamespace()+"/"+o.GetName()] = plain(&o)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
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
