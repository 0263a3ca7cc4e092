package renku_test

import (
	"encoding/base64"
	"maps"
	"os"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/renku"
	"carrick/steps/stepstest"
)

// installable adds answers with which the charts are small ones of our own.
func installable(answers map[string]any) map[string]any {
	out := map[string]any{"charts.source": "testdata/charts", "operator.version": "0.30.2", "driver.version": "0.6.0"}
	maps.Copy(out, answers)
	return out
}

// registerDriver does what the kubelet does where csi-rclone's pod runs: nodes
// that nothing runs on have no kubelet.
func registerDriver(t *testing.T, box *clustertest.Sandbox) {
	t.Helper()
	for _, node := range strings.Fields(box.Run(t, clustertest.Remote, "", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")) {
		const one = `{"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "NODE"}, "spec": {"drivers": [{"name": "csi-rclone", "nodeID": "NODE"}]}}`
		box.Run(t, clustertest.Remote, strings.ReplaceAll(one, "NODE", node), "apply", "--server-side", "--force-conflicts", "-f", "-")
		box.Cleanup(t, clustertest.Remote, "delete", "csinode", node)
	}
}

// localRenku puts on the local cluster what Renku's own charts make there, as
// far as the step looks at it.
func localRenku(t *testing.T, box *clustertest.Sandbox) {
	t.Helper()
	crd, err := os.ReadFile("testdata/charts/amalthea-sessions/templates/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plain []string
	for _, line := range strings.Split(string(crd), "\n") {
		if !strings.HasPrefix(line, "{{") {
			plain = append(plain, line)
		}
	}
	release, err := stepstest.HelmRelease([]byte(`
name: renku
version: 1
info: {status: deployed}
chart: {metadata: {name: renku, version: 2.19.3, dependencies: [{name: amalthea-sessions, version: 0.30.2}, {name: csi-rclone, version: 0.6.0}]}}
config: {global: {renku: {domain: "127.0.0.1:8443"}, certificates: {customCAs: [{secret: site-ca}]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	const rest = `
---
apiVersion: v1
kind: Secret
metadata: {name: sh.helm.release.v1.renku.v1, namespace: renku, labels: {owner: helm, name: renku, status: deployed, version: "1"}}
type: helm.sh/release.v1
data: {release: RELEASE}
---
apiVersion: v1
kind: Secret
metadata: {name: renku-notebooks, namespace: renku}
stringData: {NB_SESSIONS__CA_CERTS__SECRETS: '[{"secret": "site-ca"}]', NB_DATA_SERVICE_URL: "http://renku-data-service/api/data"}
---
apiVersion: v1
kind: Secret
metadata: {name: site-ca, namespace: renku}
data: {ca.crt: CERTIFICATE}
`
	// Any certificate is one: the API server's own.
	ca := box.Run(t, clustertest.Local, "", "-n", "kube-system", "get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)
	objects := strings.NewReplacer(
		"RELEASE", base64.StdEncoding.EncodeToString(release),
		"CERTIFICATE", base64.StdEncoding.EncodeToString([]byte(ca)),
	).Replace(strings.Join(plain, "\n") + rest)
	box.Run(t, clustertest.Local, objects, "apply", "--server-side", "-f", "-")
	box.Cleanup(t, clustertest.Local, "-n", "renku", "delete", "secret", "sh.helm.release.v1.renku.v1", "renku-notebooks", "site-ca")
	box.Cleanup(t, clustertest.Local, "delete", "crd", "amaltheasessions.amalthea.dev")
}

// With what Renku tells of itself nothing but the charts' place is answered: the
// step installs both charts in its versions, copies the CA, comes to hold, and
// goes without a trace.
func TestOperatorAndDriverComeAndGo(t *testing.T) {
	box := seeded(t)
	localRenku(t, box)
	answers := map[string]any{"sessions.namespace": "operated", "charts.source": "testdata/charts"}
	s := stepstest.Open(t, box, renku.Guide(), assets, "operated", answers)
	before := stepstest.Snapshot(t, box)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	for _, check := range []string{
		"session-crd", "session-crd-equal", "session-crd-owner", "operator-ready", "operator-version", "rclone-storage-class",
		"same-site", "driver-version", "pod-security-csi", "csi-on-nodes", "csi-kubelet-dir", "custom-cas-there",
	} {
		if v := verdict(t, s, check, steps.Remote); v.Status != steps.Pass {
			t.Errorf("%s: %v %s", check, v.Status, v.Found)
		}
	}
	again, err := s.Plan(t.Context(), steps.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if !again.Empty() {
		t.Errorf("a second apply would change: %+v", again.Actions)
	}
	stepstest.Undo(t, s)
	after := stepstest.Snapshot(t, box)
	for k := range after {
		if _, was := before[k]; !was {
			t.Errorf("left behind: %s", k)
		}
	}
	for k := range before {
		if _, is := after[k]; !is {
			t.Errorf("taken away: %s", k)
		}
	}
}

// A definition that stood before is not touched, and stays.
func TestADefinitionThatStoodStays(t *testing.T) {
	box := seeded(t)
	crd := box.Run(t, clustertest.Remote, "", "get", "crd", "--ignore-not-found", "-o", "name", "amaltheasessions.amalthea.dev")
	if crd != "" {
		t.Fatalf("another test left %s", crd)
	}
	text, err := os.ReadFile("testdata/charts/amalthea-sessions/templates/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer("{{- if .Values.deployCrd }}\n", "", "{{- end }}\n", "").Replace(string(text))
	box.Run(t, clustertest.Remote, plain, "create", "-f", "-")
	defer box.Run(t, clustertest.Remote, "", "delete", "crd", "amaltheasessions.amalthea.dev")
	s := stepstest.Open(t, box, renku.Guide(), assets, "stood", installable(map[string]any{"sessions.namespace": "stood-sessions"}))
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	stepstest.Undo(t, s)
	if got := box.Run(t, clustertest.Remote, "", "get", "crd", "amaltheasessions.amalthea.dev", "-o", "jsonpath={.metadata.labels}{.metadata.annotations}"); got != "" {
		t.Errorf("the definition carries %s", got)
	}
}
