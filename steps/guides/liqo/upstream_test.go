package liqo_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// TestUpstreamPeering peers two clusters that run Liqo's own controllers, replicator, webhooks and virtual kubelet,
// with the RBAC of its chart.
func TestUpstreamPeering(t *testing.T) {
	src := upstream.Find(t, "liqo")
	bin := src.Build(
		t, "./cmd/liqo-controller-manager", "./cmd/crd-replicator", "./cmd/webhook", "./cmd/virtual-kubelet", "./cmd/liqoctl",
	)
	box := clustertest.Start(t)
	box.Reset(t)
	consumer := realLiqo(t, box, src, bin, clustertest.Local, "milan", nil)
	provider := realLiqo(t, box, src, bin, clustertest.Remote, "rome", nil)
	without := func(more map[string]any) map[string]any {
		answers := map[string]any{"network.enabled": false}
		maps.Copy(answers, more)
		return answers
	}
	open := func(t *testing.T, more map[string]any) *engine.Session {
		return stepstest.Open(t, box, liqo.Guide(), assets, "upstream", without(more))
	}
	src.Try(t, "offloading without networks: apply, check, undo to nothing", func(t *testing.T) {
		stepstest.Cycle(t, box, liqo.Guide(), assets, "upstream", without(nil), madeForRequests)
	})
	src.Try(t, "a pod of the consumer runs on the provider", func(t *testing.T) {
		s := open(t, nil)
		stepstest.Apply(t, s)
		stepstest.Green(t, s)
		box.Run(t, clustertest.Local, "", "-n", "demo", "run", "web", "--image", "nginx",
			`--overrides={"spec":{"nodeSelector":{"liqo.io/type":"virtual-node"}}}`)
		box.Run(t, clustertest.Local, "", "-n", "demo", "wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
		box.Run(t, clustertest.Remote, "", "-n", "demo-milan", "get", "pod", "web")
		box.Run(t, clustertest.Local, "", "-n", "demo", "delete", "pod", "web", "--timeout=120s")
	})
	src.Try(t, "a Tenant is drained, and active again once the replicator restarts", func(t *testing.T) {
		stepstest.Apply(t, open(t, map[string]any{"tenant.condition": "Drained"}))
		s := open(t, nil)
		stepstest.Apply(t, s)
		r := fails(t, s, "slice-copied", steps.Remote)
		const restart = "rollout restart deployment -l app.kubernetes.io/name=crd-replicator"
		if r.Status != steps.Fail || !strings.Contains(r.Fix, restart) {
			t.Errorf("slice-copied: %s %s; %s", r.Status, r.Found, r.Fix)
		}
		consumer.programs["crd-replicator"].Restart(t)
		stepstest.Green(t, s)
	})
	src.Try(t, "a request with another key is denied, and mended by its fix", func(t *testing.T) {
		s := open(t, nil)
		undone, err := s.PlanUndo(t.Context(), engine.Scope{Steps: []string{"offloading", "resources"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Undo(t.Context(), undone, nil); err != nil {
			t.Fatal(err)
		}
		box.Run(t, clustertest.Local, "", "-n", "liqo", "delete", "secret", "authentication-keys")
		consumer.programs["liqo-controller-manager"].Restart(t)
		_ = s.Apply(t.Context(), planOf(t, s), steps.ApplyOptions{}, nil) // actions that wait for the slice fail
		r := fails(t, s, "slice-accepted", steps.Local)
		const earlier = "Secret liqo-remote-certificate-rome on the provider has the certificate of an earlier request"
		if r.Status != steps.Fail || !strings.Contains(r.Found, earlier) {
			t.Fatalf("slice-accepted: %s %s; %s", r.Status, r.Found, r.Fix)
		}
		box.Run(t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "delete", "secret", "liqo-remote-certificate-rome")
		box.Run(
			t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "delete", "resourceslices.authentication.liqo.io", "rome",
		)
		settled(t, s, "virtual-node", steps.Local)
		stepstest.Apply(t, s)
		stepstest.Green(t, s)
	})
	src.Try(t, "undo leaves nothing of the peering", func(t *testing.T) {
		stepstest.Undo(t, open(t, nil))
		for _, side := range []string{clustertest.Local, clustertest.Remote} {
			left := box.Run(t, side, "", "get", "namespaces,foreignclusters.core.liqo.io",
				"-l", "liqo.io/remote-cluster-id", "-o", "name")
			if left != "" {
				t.Errorf("%s: %s", side, left)
			}
		}
	})
	src.Try(t, "a peering by liqoctl is adopted, and both call it healthy", func(t *testing.T) {
		liqoctl := func(args ...string) string {
			t.Helper()
			at := []string{"--kubeconfig", box.Kubeconfigs[clustertest.Local], "--context", box.Contexts[clustertest.Local]}
			out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "liqoctl"), append(args, at...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("liqoctl %s: %v\n%s", strings.Join(args, " "), err, out)
			}
			return string(out)
		}
		remote := []string{
			"--remote-kubeconfig", box.Kubeconfigs[clustertest.Remote], "--remote-context", box.Contexts[clustertest.Remote],
		}
		liqoctl(append([]string{"peer", "--networking-disabled", "--timeout", "3m"}, remote...)...)
		box.Run(t, clustertest.Local, "", "create", "namespace", "shop")
		liqoctl("offload", "namespace", "shop", "--timeout", "2m")
		x := stepstest.SiteOf(t, box, liqo.Guide(), assets, true, nil)
		bad := map[string]steps.Result{}
		// wait for resources for which liqoctl does not wait
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
			bad = x.Reds()
			maps.DeleteFunc(bad, func(_ string, v steps.Result) bool { return v.Status == steps.Warn })
			if len(bad) == 0 {
				break
			}
		}
		for id, v := range bad {
			t.Errorf("%s: %s: %s", id, v.Status, v.Found)
		}
		// credentials and nodes
		if said := liqoctl("info", "peer", "rome", "--output", "yaml"); strings.Count(said, "status: Healthy") < 2 ||
			strings.Contains(said, "Unhealthy") {
			t.Errorf("liqoctl says\n%s", said)
		}
		liqoctl("unoffload", "namespace", "shop", "--skip-confirm")
		liqoctl(append([]string{"unpeer", "--skip-confirm", "--delete-namespaces", "--timeout", "3m"}, remote...)...)
	})
	src.Try(t, "with the provider gone, undo leaves nothing on the consumer", func(t *testing.T) {
		answers := map[string]any{"provider.server": provider.address}
		stepstest.Apply(t, open(t, answers))
		for _, p := range provider.programs {
			p.End()
		}
		provider.cut()
		s := stepstest.OpenWith(t, liqo.Guide(), assets, "upstream", without(answers), map[steps.Side]engine.Endpoint{
			steps.Local: {Cluster: box.Open(t, clustertest.Local, cluster.Options{}), Name: box.Contexts[clustertest.Local]},
		})
		stepstest.Undo(t, s)
		left := box.Run(
			t, clustertest.Local, "", "get", "namespaces,foreignclusters.core.liqo.io", "-l", "liqo.io/remote-cluster-id", "-o",
			"name",
		)
		if left != "" {
			t.Errorf("the consumer has %s", left)
		}
	})
}

func planOf(t *testing.T, s *engine.Session) *engine.Plan {
	t.Helper()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fails returns the verdict of a check once the check fails.
func fails(t *testing.T, s *engine.Session, check string, side steps.Side) steps.Result {
	t.Helper()
	return stepstest.Once(t, s, check, side, func(v steps.Status) bool { return v == steps.Fail })
}

// madeForRequests reports whether an object is a CertificateSigningRequest. Liqo's controllers leave signed ones
// behind, and Kubernetes deletes them within an hour.
func madeForRequests(name string) bool {
	return strings.Contains(name, " certificatesigningrequests.certificates.k8s.io ")
}
