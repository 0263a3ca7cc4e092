package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
)

// jobHook is a hook with a Job and its ServiceAccount. Both are deleted after all hooks have finished, and not before.
const jobHook = `
apiVersion: v1
kind: ServiceAccount
metadata:
  name: after
  annotations: {helm.sh/hook: post-install, helm.sh/hook-weight: "-1", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: after
  annotations: {helm.sh/hook: post-install, helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: after
      nodeSelector: {{ toYaml .Values.selector | nindent 8 }}
      containers: [{name: c, image: registry.k8s.io/pause:3.10}]
`

const asking = `
apiVersion: v1
kind: ConfigMap
metadata: {name: asked}
data:
  found: {{ (lookup "v1" "ConfigMap" .Release.Namespace "there").data.key | quote }}
  none: {{ (lookup "v1" "ConfigMap" .Release.Namespace "not-there") | len | quote }}
  listed: {{ (lookup "v1" "Secret" .Release.Namespace "").items | len | quote }}
  served: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" | quote }}
  kube: {{ .Capabilities.KubeVersion.Version | quote }}
`

// Hooks run until they finish, and templates can look up objects in the cluster.
func TestHooksAndLookups(t *testing.T) {
	t.Parallel()
	const ns = "chart-hooks"
	box, c := stage(t, ns)
	box.Run(t, clustertest.Remote, "", "-n", ns, "create", "configmap", "there", "--from-literal=key=value")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: asker\nversion: 1.0.0\n", "values.yaml": "selector: {}\n",
		"templates/job.yaml": jobHook, "templates/config.yaml": asking,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	req := chart.Request{
		Name: "asker", Namespace: ns, Source: chart.Source(dir), Chart: "asker", Manager: "carrick.test",
		Labels: map[string]string{"example.org/mark": "m"},
		Values: map[string]any{"selector": map[string]any{"example.org/none": "here"}}, Timeout: 4 * time.Second,
	}
	err := chart.Install(t.Context(), c, req, nil)
	for err != nil && !strings.Contains(err.Error(), "cannot be scheduled") && req.Timeout < time.Minute {
		req.Timeout *= 4 // the scheduler of a busy machine
		err = chart.Install(t.Context(), c, req, nil)
	}
	want := "post-install hook after: the release is not ready after " + req.Timeout.String() + ": Job " + ns +
		"/after runs: pod after-"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cannot be scheduled") {
		t.Errorf("it says %v", err)
	}
	req.Values, req.Timeout = nil, time.Minute
	var said []string
	if err := chart.Install(t.Context(), c, req, func(s string) { said = append(said, s) }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(said, "\n"), "post-install hook Job after") {
		t.Errorf("it said %q", said)
	}
	get := func(args ...string) string {
		return box.Run(t, clustertest.Remote, "", append([]string{"-n", ns, "get", "--ignore-not-found"}, args...)...)
	}
	if got := get("job,serviceaccount", "-o", "name"); got != "serviceaccount/default\n" {
		t.Errorf("the hooks have left: %s", got)
	}
	if got := get(
		"configmap/asked", "-o", "jsonpath={.data.found} {.data.none} {.data.served} {.data.kube}",
	); got != "value 0 true "+box.Version {
		t.Errorf("the templates were told %q", got)
	}
}
