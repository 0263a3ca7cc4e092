package chart_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/tracked"
)

// storedSecret returns the YAML of the Secret in which Helm stores a revision.
func storedSecret(name, status string, revision int, data string) string {
	if data == "" {
		data = recorded(name, status, revision)
	}
	return fmt.Sprintf(
		"apiVersion: v1\nkind: Secret\ntype: helm.sh/release.v1\nmetadata:\n  name: sh.helm.release.v1.%s.v%d\n  labels: "+
			"{owner: helm, name: %s, status: %s, version: %q}\nstringData: {release: %q}\n---\n",
		name, revision, name, status, fmt.Sprint(revision), data,
	)
}

// recorded returns the content of a revision's Secret.
func recorded(name, status string, revision int) string {
	raw, _ := json.Marshal(map[string]any{
		"name": name, "version": revision, "info": map[string]any{"status": status},
		"chart": map[string]any{"metadata": map[string]any{"name": "tiny", "version": fmt.Sprintf("0.%d.0", revision)}},
	})
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(raw)
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func namespace(t *testing.T, box *clustertest.Sandbox, name string) {
	t.Helper()
	box.Run(t, clustertest.Remote, "", "create", "namespace", name)
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", name, "--wait=false")
}

func TestReleasesOfACluster(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	const ns = "chart-reads"
	namespace(t, box, ns)
	box.Run(
		t, clustertest.Remote,
		storedSecret("a", chart.Superseded, 9, "")+storedSecret("a", chart.Deployed, 10, "")+
			storedSecret("b", chart.Failed, 1, ""),
		"-n", ns, "apply", "-f", "-",
	)
	c := box.Open(t, clustertest.Remote, cluster.Options{})
	ctx, trace := tracked.WithTrace(t.Context())
	got, err := chart.Releases(ctx, c, ns)
	if err != nil || len(got) != 1 || got[0].Name != "a" || got[0].Revision != 10 || got[0].Version != "0.10.0" ||
		got[0].UID == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, want := range map[string]string{"a": chart.Deployed, "b": chart.Failed} {
		if r, err := chart.Find(t.Context(), c, ns, name); err != nil || r.Status != want || r.Namespace != ns {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := chart.Find(t.Context(), c, ns, "none"); !errors.Is(err, chart.ErrNoRelease) {
		t.Error(err)
	}
	if _, err := chart.Find(t.Context(), c, ns, "No Name"); err == nil || errors.Is(err, chart.ErrNoRelease) {
		t.Error(err)
	}

	// A release that comes wakes who looked.
	if trace.Differs() {
		t.Fatal("the trace differs before anything has changed")
	}
	box.Run(t, clustertest.Remote, storedSecret("c", chart.Deployed, 1, ""), "-n", ns, "apply", "-f", "-")
	waiting, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := trace.Wait(waiting); err != nil {
		t.Fatalf("nothing was noticed: %v", err)
	}

	// One that can't be read is told, beside the others; so is one that calls itself another release.
	box.Run(
		t, clustertest.Remote,
		storedSecret("d", chart.Deployed, 1, "broken!")+
			storedSecret("e", chart.Deployed, 1, recorded("a", chart.Deployed, 10)),
		"-n", ns, "apply", "-f", "-",
	)
	fresh := box.Open(t, clustertest.Remote, cluster.Options{Once: true})
	if got, err := chart.Releases(t.Context(), fresh, ns); err == nil || len(got) != 2 {
		t.Errorf("%+v, %v", got, err)
	}

	if _, err := chart.Find(t.Context(), fresh, ns, "e"); err == nil || errors.Is(err, chart.ErrNoRelease) {
		t.Errorf("a record that calls itself another release: %v", err)
	}

	nobody, err := cluster.Open(
		kubeconfig.Access{
			Kubeconfig: box.Kubeconfigs[clustertest.Remote], Context: box.Contexts[clustertest.Remote], As: "nobody",
		},
		cluster.Options{Once: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nobody.Close)
	if got, err := chart.Releases(t.Context(), nobody, ns); !apierrors.IsForbidden(err) || got != nil {
		t.Errorf("who may not look found %v, %v", got, err)
	}
}
