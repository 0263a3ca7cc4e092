package liqo_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// TestUpstreamNetworks joins the networks of two clusters with Liqo's own controllers, IPAM and gateways. Each gateway
// has its own network namespace, and its WireGuard runs in userspace.
func TestUpstreamNetworks(t *testing.T) {
	src := upstream.Find(t, "liqo")
	nets := upstream.NewNetworks(t)
	bin := src.Build(t, "./cmd/liqo-controller-manager", "./cmd/crd-replicator", "./cmd/webhook", "./cmd/virtual-kubelet",
		"./cmd/liqoctl", "./cmd/ipam", "./cmd/gateway", "./cmd/gateway/wireguard")
	box := clustertest.Start(t)
	box.Reset(t)
	realLiqo(t, box, src, bin, clustertest.Local, "milan", nets)
	provider := realLiqo(t, box, src, bin, clustertest.Remote, "rome", nets)
	for _, side := range []string{clustertest.Local, clustertest.Remote} {
		box.Run(t, side, "", "-n", "liqo", "wait", "--for=create", "--timeout=120s",
			"firewallconfigurations.networking.liqo.io/service-nodeport-routing")
	}
	atRest(t, box)
	answers := map[string]any{"network.service-type": "LoadBalancer"}
	src.Try(t, "with networks and real gateways: apply, check, undo to nothing", func(t *testing.T) {
		stepstest.Cycle(t, box, liqo.Guide(), assets, "upstream", answers, madeForRequests)
	})
	open := func(t *testing.T) *engine.Session {
		t.Helper()
		return stepstest.Open(t, box, liqo.Guide(), assets, "upstream", answers)
	}
	healthy := func(t *testing.T) bool { // as liqoctl sees it
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "liqoctl"), "info", "peer", "rome",
			"--output", "yaml", "--kubeconfig", box.Kubeconfigs[clustertest.Local],
			"--context", box.Contexts[clustertest.Local]).CombinedOutput()
		if err != nil {
			t.Fatalf("liqoctl: %v\n%s", err, out)
		}
		t.Logf("liqoctl says\n%s", out)
		return strings.Contains(string(out), "status: Healthy") && !strings.Contains(string(out), "Unhealthy")
	}
	src.Try(t, "liqoctl and carrick both call the tunnel up, and down once a gateway stops", func(t *testing.T) {
		s := open(t)
		stepstest.Apply(t, s)
		stepstest.Green(t, s)
		if !healthy(t) {
			t.Error("liqoctl does not call it healthy")
		}
		provider.gateways.of(t, "liqo-tenant-milan/gw-milan", "wireguard").End()
		for _, side := range steps.Sides {
			if r := fails(t, s, "connection", side); !strings.Contains(r.Found, "is Error") {
				t.Errorf("%s: %s %s; %s", side, r.Status, r.Found, r.Fix)
			}
		}
		if healthy(t) {
			t.Error("liqoctl calls it healthy")
		}
		box.Run(t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "rollout", "restart", "deployment", "gw-milan")
		stepstest.Green(t, s)
	})
	src.Try(t, "a gateway whose keys were deleted gets new ones and restarts, with one apply", func(t *testing.T) {
		box.Run(t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "delete", "secret", "gw-keys")
		s := open(t)
		_ = s.Apply(t.Context(), planOf(t, s), steps.ApplyOptions{}, nil) // can stop at the virtual node
		stepstest.Green(t, s)
	})
	src.Try(t, "undo leaves nothing of the networks", func(t *testing.T) {
		stepstest.Undo(t, open(t))
		for _, side := range []string{clustertest.Local, clustertest.Remote} {
			const kinds = "namespaces,foreignclusters.core.liqo.io,networks.ipam.liqo.io,clusterrolebindings"
			left := box.Run(t, side, "", "get", kinds, "-A", "-l", "liqo.io/remote-cluster-id", "-o", "name")
			if left != "" {
				t.Errorf("%s: %s", side, left)
			}
		}
	})
}

// atRest waits until no object in either cluster changes, because Liqo creates objects for each node when it starts.
func atRest(t *testing.T, box *clustertest.Sandbox) {
	t.Helper()
	for was, end := stepstest.Snapshot(t, box), time.Now().Add(2*time.Minute); ; {
		time.Sleep(5 * time.Second)
		now := stepstest.Snapshot(t, box)
		if maps.Equal(was, now) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the clusters do not come to rest")
		}
		was = now
	}
}
