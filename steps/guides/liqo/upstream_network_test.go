package liqo_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// TestUpstreamNetworks joins the networks of two clusters by Liqo's own controllers, IPAM and gateways. The WireGuard of each
// gateway is the real one in userspace, and each gateway has a network namespace of its own.
func TestUpstreamNetworks(t *testing.T) {
	src := upstream.Find(t, "liqo")
	nets := upstream.NewNetworks(t)
	bin := src.Build(t, "./cmd/liqo-controller-manager", "./cmd/crd-replicator", "./cmd/webhook", "./cmd/virtual-kubelet",
		"./cmd/liqoctl", "./cmd/ipam", "./cmd/gateway", "./cmd/gateway/wireguard")
	box := clustertest.Start(t)
	box.Reset(t)
	realLiqo(t, box, src, bin, clustertest.Local, "milan", nets)
	provider := realLiqo(t, box, src, bin, clustertest.Remote, "rome", nets)
	answers := map[string]any{"network.service-type": "LoadBalancer"}
	src.Try(t, "with networks and real gateways: apply, check, undo to nothing", func(t *testing.T) {
		stepstest.Cycle(t, box, liqo.Guide(), assets, "upstream", answers, madeForRequests)
	})
	info := func(t *testing.T) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "liqoctl"), "info", "peer", "rome", "--output", "yaml",
			"--kubeconfig", box.Kubeconfigs[clustertest.Local], "--context", box.Contexts[clustertest.Local]).CombinedOutput()
		if err != nil {
			t.Fatalf("liqoctl: %v\n%s", err, out)
		}
		return string(out)
	}
	src.Try(t, "both call a tunnel healthy, and broken once a gateway stops; mended by its fix", func(t *testing.T) {
		s := stepstest.Open(t, box, liqo.Guide(), assets, "upstream", answers)
		stepstest.Apply(t, s)
		stepstest.Green(t, s)
		t.Log(info(t))
		provider.gateways.of(t, "liqo-tenant-milan/gw-milan", "wireguard").End()
		for _, side := range steps.Sides {
			r := fails(t, s, "connection", side)
			t.Logf("%s: %s %s; %s", side, r.Status, r.Found, r.Fix)
			if !strings.Contains(r.Found, "says Error") {
				t.Errorf("%s: %s %s; %s", side, r.Status, r.Found, r.Fix)
			}
		}
		t.Log(info(t))
		box.Run(t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "rollout", "restart", "deployment", "gw-milan")
		stepstest.Green(t, s)
	})
	src.Try(t, "a gateway that has older keys is named, and mended by its fix", func(t *testing.T) {
		box.Run(t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "delete", "secret", "gw-keys")
		x := stepstest.SiteOf(t, box, liqo.Guide(), assets, true, maps.Clone(answers))
		stepstest.Apply(t, x.Session, steps.ApplyOptions{TakeOver: true})
		r := fails(t, x.Session, "connection", steps.Remote)
		t.Logf("%s %s; %s", r.Status, r.Found, r.Fix)
		if !strings.Contains(r.Found, "has used an earlier private key") {
			t.Errorf("%s %s; %s", r.Status, r.Found, r.Fix)
		}
		x.Fix(r.Fix)
		stepstest.Green(t, x.Session)
	})
	src.Try(t, "undo leaves nothing of the networks", func(t *testing.T) {
		stepstest.Undo(t, stepstest.Open(t, box, liqo.Guide(), assets, "upstream", answers))
	})
}
