package ondemand_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// withReaper installs a reaper from upstream's chart through the given step of the guide.
func withReaper(t *testing.T, name, step string) (upstream.Checkout, *clustertest.Sandbox, *engine.Session) {
	t.Helper()
	src, charts := upstream.Find(t, name), t.TempDir()
	version := src.Chart(t, "charts/"+name, charts, "")
	box := seeded(t)
	s := openCluster(t, box, withoutHost(ondemand.Guide()), "upstream", map[string]any{
		step + ".use": true, step + ".source": charts, step + ".version": version,
	})
	stepstest.Apply(t, s)
	return src, box, s
}

// TestUpstreamPodReaper installs upstream's chart of job-pod-reaper and runs upstream's program, which must delete only
// users' expired pods.
func TestUpstreamPodReaper(t *testing.T) {
	src, box, s := withReaper(t, "job-pod-reaper", "walltime")
	src.Try(t, "its chart is installed, and the checks on it pass", func(t *testing.T) {
		passes(t, s, "walltime", "reaper-installed", "reaper-values", "reaper-scope", "reaper-grantable-permissions")
		passes(t, s, "trial", "reaper-bound")
		stepstest.Green(t, s)
	})
	for _, pod := range []struct{ name, namespace, lifetime string }{
		{"expired", "user-alice", "1s"}, {"valid", "user-alice", "99h"}, {"unrelated", "default", "1s"},
	} {
		box.Run(t, clustertest.Remote, fmt.Sprintf(appPod, pod.name, pod.namespace, pod.lifetime), "create", "-f", "-")
	}
	r := upstream.Runner{Box: box, Side: clustertest.Remote, Bin: src.Build(t, "."), More: map[string][]string{
		"job-pod-reaper": {"--listen-address=127.0.0.1:0", "--reap-interval=1s"},
	}}
	p := r.Deployment(t, "job-pod-reaper", "job-pod-reaper", nil)
	src.Try(t, "an expired pod of a user is deleted, and no other one", func(t *testing.T) {
		box.Run(t, clustertest.Remote, "", "-n", "user-alice", "wait", "--for=delete", "pod/expired", "--timeout=60s")
		box.Run(t, clustertest.Remote, "", "-n", "user-alice", "get", "pod", "valid")
		box.Run(t, clustertest.Remote, "", "-n", "default", "get", "pod", "unrelated")
		if said := p.Tail(); strings.Contains(said, "level=error") {
			t.Errorf("it reports an error:\n%s", said)
		}
	})
}

// appPod is a pod like those that the adapter submits, with the fields that the reaper reads.
const appPod = `
apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: %s
  labels: {app.kubernetes.io/managed-by: open-ondemand, job: "1"}
  annotations: {pod.kubernetes.io/lifetime: %s}
spec:
  schedulerName: none
  securityContext: {runAsNonRoot: true, runAsUser: 2001, runAsGroup: 2001, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: web
    image: docker.io/library/nginx:1.27
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// TestUpstreamNamespaceReaper installs upstream's chart of k8-namespace-reaper and runs upstream's program, which must
// delete only the namespace of a user who has run nothing.
func TestUpstreamNamespaceReaper(t *testing.T) {
	src, box, s := withReaper(t, "k8-namespace-reaper", "idle")
	src.Try(t, "its chart is installed, and the checks on it pass", func(t *testing.T) {
		passes(t, s, "idle", "prometheus-knows-pods", "idle-values", "idle-regexp", "idle-ready")
		stepstest.Green(t, s)
	})
	box.Run(t, clustertest.Remote, "", "-n", "user-bob", "delete", "pods,deployments,jobs", "--all")
	box.Run(
		t, clustertest.Remote, "", "annotate", "--overwrite", "ns", "user-alice", "user-bob",
		"openondemand.org/last-hook-execution=1",
	)
	box.Run(t, clustertest.Remote, "", "create", "ns", "user-data-of-another")
	r := upstream.Runner{Box: box, Side: clustertest.Remote, Bin: src.Build(t, "."), More: map[string][]string{
		"k8-namespace-reaper": {
			"--listen-address=127.0.0.1:0", "--reap-after=1s", "--interval=1s",
			"--prometheus-address=" + proxied(t, box) + "/api/v1/namespaces/monitoring/services/prometheus:9090/proxy",
		},
	}}
	p := r.Deployment(t, "k8-namespace-reaper", "k8-namespace-reaper", nil)
	src.Try(t, "an idle namespace of a user is deleted, and no other one", func(t *testing.T) {
		box.Run(t, clustertest.Remote, "", "wait", "--for=delete", "ns/user-bob", "--timeout=60s")
		for _, name := range []string{"user-data-of-another", "default", "k8-namespace-reaper"} {
			if phase := box.Run(
				t, clustertest.Remote, "", "get", "ns", name, "-o", "jsonpath={.status.phase}",
			); phase != "Active" {
				t.Errorf("namespace %s is %s", name, phase)
			}
		}
		if said := p.Tail(); strings.Contains(said, "level=error") {
			t.Errorf("it reports an error:\n%s", said)
		}
	})
}

// passes fails the test unless the named checks of a step pass on the cluster's side.
func passes(t *testing.T, s *engine.Session, step string, names ...string) {
	t.Helper()
	b, _ := s.Look(t.Context(), s.Guide().Cells())
	for _, name := range names {
		if v := b.Verdict(steps.Cell{Step: step, Check: name, Side: steps.Remote}); v.Status != steps.Pass {
			t.Errorf("%s: %v: %s", name, v.Status, v.Found)
		}
	}
}

// proxied starts kubectl proxy for the remote cluster and returns its address.
func proxied(t *testing.T, box *clustertest.Sandbox) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	proxy := exec.CommandContext(
		ctx, box.Kubectl, "--kubeconfig", box.Kubeconfigs[clustertest.Remote], "proxy", "--port=0",
	)
	out, err := proxy.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = proxy.Wait()
	})
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		_, at, ok := strings.Cut(strings.TrimSpace(line), "Starting to serve on ")
		if !ok {
			t.Fatalf("kubectl proxy says %q", line)
		}
		return "http://" + at
	case <-time.After(10 * time.Second):
		t.Fatal("kubectl proxy does not say where it listens")
	}
	return ""
}
