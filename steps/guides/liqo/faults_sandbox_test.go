package liqo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// fault is a verdict that a check must return.
type fault struct {
	check string
	side  steps.Side
	found string // part of Result.Found
	fix   string // part of Result.Fix
}

// siteFaults maps faults of a sandbox without a peering to the verdicts on them. These faults appear or disappear while
// carrick watches. The verdicts on all other faults are in the recorded states.
var siteFaults = map[string][]fault{
	"webhook-cert-expiring": {{"webhooks", steps.Remote, "expires", "liqo-webhook-certs"}},
	"replicator-down":       {{"liqo-ready", steps.Local, "liqo-crd-replicator", "scale"}},
}

// says follows a check until it returns the verdict f, and fails the test after five minutes.
func says(t *testing.T, s *engine.Session, f fault) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, step := s.Guide().Check(f.check)
	at := steps.Cell{Step: step.Name, Check: f.check, Side: f.side}
	var last steps.Result
	err := s.Follow(ctx, s.Guide().Cells(), func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
		last = b.Verdict(at)
		bad := last.Status != steps.Pass && last.Status != steps.Skip
		return !bad || !strings.Contains(last.Found, f.found) || !strings.Contains(last.Fix, f.fix)
	})
	if err != nil {
		t.Errorf(
			"%s on the %s: %s: %q, want %q\nfix %q, want %q", f.check, f.side, last.Status, last.Found, f.found, last.Fix, f.fix,
		)
	}
}

// do applies a part of the guide.
func do(t *testing.T, s *engine.Session, scope engine.Scope, o steps.ApplyOptions) {
	t.Helper()
	p, err := s.Plan(t.Context(), scope)
	if err == nil {
		err = s.Apply(t.Context(), p, o, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestVerifyLiveFaults(t *testing.T) {
	stepstest.Live(
		t, "live", stepstest.Except(siteFaults, nil), func(t *testing.T, box *clustertest.Sandbox, name string) {
			box.SeedFault(t, "liqo", name)
			s := stepstest.Open(t, box, liqo.Guide(), assets, "fault", map[string]any{"network.node-port": 30742})
			for _, f := range siteFaults[name] {
				says(t, s, f)
			}
		},
	)
}

// If Liqo has no networking module on one side, the guide creates the peering without a tunnel.
func TestVerifyLiveWithoutTheNetworkingModule(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box := clustertest.Start(t)
	box.SeedFault(t, "liqo", "networking-off")
	stepstest.Cycle(t, box, liqo.Guide(), assets, "modules", nil)
}

// Another consumer's Tenant already has the name in the published guide.
func TestVerifyLiveAnotherConsumersTenantIsNotInTheWay(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box := clustertest.Start(t)
	box.SeedFault(t, "liqo", "leftover-tenant")
	for _, comes := range []string{
		"foreignclusters.core.liqo.io/oslo", "clusterrolebinding/liqo-binding-liqo-virtual-kubelet-remote-clusterwide-oslo",
	} {
		box.Run(t, clustertest.Remote, "", "wait", "--for=create", "--timeout=300s", comes)
	}
	stepstest.Cycle(t, box, liqo.Guide(), assets, "second", nil)
}

// carrick reports a node port that is in use before it creates the gateway, because Liqo would not recover
// automatically.
func TestVerifyANodePortThatIsTaken(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.SeedFault(t, "liqo", "node-port-taken")
	s := stepstest.Open(t, box, liqo.Guide(), assets, "taken", map[string]any{"network.node-port": 30742})
	do(t, s, engine.Scope{Steps: []string{"tenant-namespaces", "network", "keys"}}, steps.ApplyOptions{})
	p, err := s.Plan(t.Context(), engine.Scope{Steps: []string{"tunnel"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err == nil ||
		!strings.Contains(err.Error(), "node port is free") {
		t.Errorf("apply: %v", err)
	}
	says(t, s, fault{"node-port", steps.Remote, "30742", "network.node-port"})
	if got := box.Run(
		t, clustertest.Remote, "", "get", "gatewayservers.networking.liqo.io", "-A", "-o", "name",
	); got != "" {
		t.Errorf("a gateway was made all the same: %s", got)
	}
}

func TestVerifyALoadBalancerWithoutAnAddressIsSaid(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.SeedFault(t, "liqo", "load-balancer-pending")
	s := stepstest.Open(t, box, liqo.Guide(), assets, "pending", map[string]any{"network.service-type": "LoadBalancer"})
	do(t, s, engine.Scope{Steps: []string{"tenant-namespaces", "network", "keys"}}, steps.ApplyOptions{})
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"provider-server"}})
	if err != nil {
		t.Fatal(err)
	}
	before := box.Run(t, clustertest.Remote, "", "get", "services", "-A", "-o", "name")
	done := make(chan error, 1)
	go func() { done <- s.Apply(t.Context(), p, steps.ApplyOptions{}, nil) }()
	box.Run(
		t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "wait", "--for=create", "--timeout=300s", "service/gw-milan",
	)
	if strings.Contains(before, "gw-milan") {
		t.Fatal("the Service was there before")
	}
	v := settled(t, s, "server-endpoint", steps.Remote)
	if v.Status != steps.Waiting || !strings.Contains(v.Found, "load balancer") {
		t.Errorf("server-endpoint: %s: %s", v.Status, v.Found)
	}
	select {
	case err := <-done:
		t.Errorf("apply ended although there is no address yet: %v", err)
	default: // apply waits as long as the check does
	}
}

// An admin who follows the published guide to the letter leaves an incomplete peering. carrick reports each gap, and
// the fix that it shows closes the gap.
func TestVerifyLiveThePublishedPageIsMended(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.SeedFault(t, "liqo", "page")
	answers := map[string]any{"offloading.namespace": "demo"}
	s := stepstest.Open(t, box, liqo.Guide(), assets, "page", answers)
	for _, f := range []fault{
		{"configuration", steps.Local, "no Configuration", "--step network"},
		{"configuration", steps.Remote, "no Configuration", "--step network"},
		{"slice", steps.Local, "liqo.io/replication", "--step resources"},
		{"tenant-name", steps.Remote, "my-tenant", "set tenant.name to milan"},
	} {
		says(t, s, f)
	}
	answers["tenant.name"] = "milan"
	again := stepstest.Open(t, box, liqo.Guide(), assets, "page", answers)
	for _, step := range []string{"network", "authentication", "resources"} {
		do(t, again, engine.Scope{Steps: []string{step}}, steps.ApplyOptions{Replace: step == "authentication"})
	}
	stepstest.Green(t, again)
	if v := verdict(t, again, "tenant-name", steps.Remote); v.Status != steps.Pass {
		t.Errorf("tenant-name: %s: %s", v.Status, v.Found)
	}
	if got := box.Run(
		t, clustertest.Local, "", "-n", "liqo-tenant-rome", "get", "resourceslices.authentication.liqo.io", "-o", "name",
	); strings.TrimSpace(got) != "resourceslice.authentication.liqo.io/test" {
		t.Errorf("beside the slice that was there another one was made: %s", got)
	}
	stepstest.Undo(t, again)
	for _, theirs := range []string{
		"secret/gw-keys", "secret/cplane-secret", "gatewayclients.networking.liqo.io/client",
		"resourceslices.authentication.liqo.io/test",
	} {
		box.Run(t, clustertest.Local, "", "-n", "liqo-tenant-rome", "get", theirs)
	}
	if got := box.Run(
		t, clustertest.Local, "", "-n", "liqo-tenant-rome", "get", "secret", "gw-keys", "cplane-secret", "-o",
		"jsonpath={.items[*].metadata.labels}{.items[*].metadata.annotations}",
	); strings.Contains(got, "carrick") {
		t.Errorf("what was there before still carries a mark: %s", got)
	}
}
