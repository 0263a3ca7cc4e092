package chart_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
)

// killed starts an installation and ends its goroutine at the write of an object of the given kind, as if the process
// was killed. Nothing is written afterwards.
func killed(t *testing.T, c *cluster.Cluster, req chart.Request, kind string) {
	t.Helper()
	req.Write = func(ctx context.Context, o *unstructured.Unstructured) error {
		if o.GetKind() == kind {
			runtime.Goexit()
		}
		o = o.DeepCopy()
		o.SetLabels(labelled(o.GetLabels(), req.Labels))
		_, err := c.Apply(ctx, o, cluster.ApplyOptions{Manager: req.Manager})
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = chart.Install(t.Context(), c, req, nil)
	}()
	<-ended
}

func labelled(labels, more map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{labels, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// An installation or upgrade that was killed resumes the same revision, however often it is killed. Random values in
// templates are generated only once.
func TestWhatWasKilledGoesOn(t *testing.T) {
	t.Parallel()
	const ns = "chart-killed"
	box, c := stage(t, ns)
	revisions := func() string {
		t.Helper()
		return strings.TrimSpace(box.Run(
			t, clustertest.Remote, "", "-n", ns, "get", "secrets", "-l", "owner=helm", "-o",
			"jsonpath={range .items[*]}{.metadata.labels.version}={.metadata.labels.status} {end}",
		))
	}
	req := wanted(ns, map[string]any{"message": "one"})
	for range 3 {
		killed(t, c, req, "Deployment")
		if got := revisions(); got != "1=pending-install" {
			t.Fatalf("revisions %s", got)
		}
	}
	secret := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "secret/tiny", "-o", "jsonpath={.data.random}")
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	if got := revisions(); got != "1=deployed" {
		t.Errorf("revisions %s", got)
	}
	if got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "secret/tiny", "-o", "jsonpath={.data.random}",
	); secret == "" || got != secret {
		t.Error("the random value has changed")
	}
	req.Values = map[string]any{"message": "two"}
	for range 2 {
		killed(t, c, req, "Deployment")
		if got := revisions(); got != "1=deployed 2=pending-upgrade" {
			t.Fatalf("revisions %s", got)
		}
	}
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	if got := revisions(); got != "1=superseded 2=deployed" {
		t.Errorf("revisions %s", got)
	}
	req.Values = map[string]any{"message": "three"} // another wish is another revision
	killed(t, c, req, "Deployment")
	req.Values = map[string]any{"message": "four"}
	if err := chart.Install(t.Context(), c, req, nil); err != nil {
		t.Fatal(err)
	}
	if got := revisions(); !strings.HasSuffix(got, "4=deployed") {
		t.Errorf("revisions %s", got)
	}
}
