package renku_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/facts"
	"carrick/steps/guides/renku"
	"carrick/steps/linkfile"
	"carrick/steps/stepstest"
)

// defaults are the answers of a state that nobody gave, and from where they are.
func defaults(t *testing.T, state string) map[string]string {
	t.Helper()
	g := renku.Guide()
	s := stepstest.Stand(t, g, assets, "testdata", state)
	out := map[string]string{}
	for i := range g.Steps {
		for _, a := range s.Answers(t.Context(), &g.Steps[i]) {
			if a.From == "given" {
				continue
			}
			out[a.Question.Key] = fmt.Sprintf("%v | %s", a.Value, a.From)
			if a.Err != nil {
				out[a.Question.Key] = "error: " + steps.Errored(a.Err).Found
			}
		}
	}
	return out
}

// What the clusters tell stands as the default of what is asked.
func TestWhatReleasesTellIsNotAskedFor(t *testing.T) {
	got := defaults(t, "discovered")
	for key, want := range map[string]string{
		"renku.domain":     "127.0.0.1 | Renku's Helm release",
		"sessions.host":    "elsewhere.example.org | the redirect URIs of Renku's login",
		"charts.source":    "https://swissdatasciencecenter.github.io/helm-charts | the public repository of Renku's charts",
		"operator.version": "0.30.2 | the version on the local cluster",
		"operator.release": "amalthea-sessions | the existing release",
		"driver.version":   "0.6.0 | the version on the local cluster",
		"driver.release":   "csi-rclone | the existing release",
		"driver.namespace": "csi-rclone | the existing csi-rclone",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// Without a Helm release labels and images tell the versions, and where Renku's
// login lets sessions in is asked for.
func TestWithoutAReleaseTheRestIsAskedFor(t *testing.T) {
	for _, state := range []string{"argo-cd", "releases-unreadable"} {
		got := defaults(t, state)
		for key, want := range map[string]string{
			"operator.version": "0.30.2 | the version on the local cluster",
			"charts.source":    "https://swissdatasciencecenter.github.io/helm-charts | the public repository of Renku's charts",
		} {
			if got[key] != want {
				t.Errorf("%s: %s is %q, want %q", state, key, got[key], want)
			}
		}
	}
}

// A DaemonSet of csi-rclone's name in a tenant's namespace does not choose the namespace of the driver, which becomes
// privileged.
func TestATenantDoesNotChooseTheDriversNamespace(t *testing.T) {
	const forged = `
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: csi-rclone-nodeplugin
  namespace: a-tenant
  labels: {app.kubernetes.io/name: csi-rclone, helm.sh/chart: csi-rclone-0.1.0, carrick/link.test: driver}
  annotations: {meta.helm.sh/release-name: forged, meta.helm.sh/release-namespace: a-tenant}
spec:
  template: {spec: {containers: [{name: rclone, image: "renku/csi-rclone:0.1.0"}]}}
`
	const installed = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: csi-rclone-nodeplugin, namespace: csi-rclone}
$delete: true
---`
	for name, remote := range map[string]string{"beside the driver": forged, "alone": installed + forged} {
		s := stepstest.StandWith(t, renku.Guide(), assets, "testdata", "healthy", "-- remote --"+remote)
		for _, a := range s.Answers(t.Context(), s.Guide().Step("operator")) {
			if a.Question.Key == "driver.namespace" && a.Value != "csi-rclone" {
				t.Errorf("%s: the driver's namespace is %v, from %s", name, a.Value, a.From)
			}
			if a.Question.Key == "driver.release" && a.Value != "csi-rclone" {
				t.Errorf("%s: the driver's release is %v, from %s", name, a.Value, a.From)
			}
		}
	}
}

// Another admin's facts file does not choose where the charts come from that are installed here.
func TestAFactsFileDoesNotChooseTheCharts(t *testing.T) {
	g := renku.Guide()
	key, _, err := facts.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	text, err := (&facts.File{
		APIVersion: facts.Version, Kind: facts.Kind, Guide: g.Name, Link: "apart", Side: "local",
		Role: g.Sides[steps.Local].Name, Taken: now, Until: now.Add(time.Hour),
		Facts:   map[string]any{"chart-repository": "https://charts.example.org"},
		Answers: map[string]any{"charts.source": "https://charts.example.org"},
	}).Encode(key)
	if err != nil {
		t.Fatal(err)
	}
	l := linkfile.New(g.Name, "apart")
	l.Path = filepath.Join(t.TempDir(), "link.yaml")
	l.Local = linkfile.EndpointSpec{Facts: "theirs.facts", Signer: key.Fingerprint()}
	if err := os.WriteFile(l.File(l.Local.Facts), text, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := engine.OpenEndpoint(l, steps.Local, g, kubeconfig.Access{}, nil, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := engine.NewSession(
		engine.SessionOptions{Guide: g, Link: l, Endpoints: map[steps.Side]engine.Endpoint{steps.Local: end}, Assets: assets},
	)
	t.Cleanup(s.Close)
	for i := range g.Steps {
		for _, a := range s.Answers(t.Context(), &g.Steps[i]) {
			if a.Question.Key != "charts.source" {
				continue
			}
			if a.Value != "https://swissdatasciencecenter.github.io/helm-charts" ||
				!strings.Contains(a.From+a.Proposed, "charts.example.org") {
				t.Errorf("the charts come from %v, as %s; %s", a.Value, a.From, a.Proposed)
			}
			return
		}
	}
	t.Error("no one asks where the charts come from")
}
