package liqo_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/linkfile"
	"carrick/steps/stepstest"
)

func seeded(t *testing.T) *clustertest.Sandbox {
	t.Helper()
	box := clustertest.Start(t)
	box.Reset(t) // much faster than undoing a peering
	box.Seed(t, "liqo")
	return box
}

func verdict(t *testing.T, s *engine.Session, check string, side steps.Side) steps.Result {
	t.Helper()
	_, step := s.Guide().Check(check)
	b, _ := s.Look(t.Context(), s.Guide().Cells())
	return b.Verdict(steps.Cell{Step: step.Name, Check: check, Side: side})
}

// settled returns the verdict of a check once the checks that it depends on have passed.
func settled(t *testing.T, s *engine.Session, check string, side steps.Side) steps.Result {
	t.Helper()
	return stepstest.Once(t, s, check, side, func(v steps.Status) bool { return v != steps.Skip && v != steps.Pending })
}

// ways maps names to the answers of complete peerings, which the tests create and undo. Each starts from two clusters
// with Liqo and ends with an offloaded namespace.
var ways = map[string]map[string]any{
	"as-it-comes": nil,
	"otherwise": {
		"network.server": "consumer", "network.service-type": "LoadBalancer", "auth.kind": "service-account",
		"offloading.mapping": "SelectedName", "offloading.remote-name": "chosen", "offloading.pods": "Remote",
		"offloading.clusters": []any{"liqo.io/remote-cluster-id=rome"},
	},
	"offloading-only": {"network.enabled": "no"},
}

// others lists the actions that the cycle of make test does not undo. The cycle "otherwise" of make verify does.
var others = []string{"service-account", "provider-client", "consumer-server"}

func TestCycle(t *testing.T) {
	restarts := []string{"consumer-gateway-restart", "provider-gateway-restart"} // leave nothing to undo
	stepstest.FirstCycle(t, liqo.Guide(), "as-it-comes", slices.Concat(restarts, others), cycle)
}

func TestVerifyOtherCycles(t *testing.T) {
	stepstest.OtherCycles(t, []string{"otherwise", "offloading-only"}, others, cycle)
}

func cycle(t *testing.T, name string) []string {
	return stepstest.Cycle(t, seeded(t), liqo.Guide(), assets, name, ways[name])
}

// No object on a side contains a private key of the other side.
func TestVerifyPrivateKeysStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	s := stepstest.Open(t, box, liqo.Guide(), assets, "keys", map[string]any{"network.node-port": 30999})
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	for side, secrets := range map[string][][2]string{
		clustertest.Local:  {{"gw-keys", "privateKey"}, {"liqo-controlplane-key-rome", `tls\.key`}},
		clustertest.Remote: {{"gw-keys", "privateKey"}},
	} {
		other, peer := clustertest.Remote, "rome"
		if side == clustertest.Remote {
			other, peer = clustertest.Local, "milan"
		}
		all := box.Run(
			t, other, "", "get", "secrets,configmaps,certificatesigningrequests,publickeies.networking.liqo.io", "-A", "-o",
			"yaml",
		)
		for _, at := range secrets {
			encoded := box.Run(
				t, side, "", "-n", "liqo-tenant-"+peer, "get", "secret", at[0], "-o", "jsonpath={.data."+at[1]+"}",
			)
			raw, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil || len(raw) < 32 {
				t.Fatalf("%s of %s: %d bytes, %v", at[1], at[0], len(raw), err)
			}
			if strings.Contains(all, encoded) || strings.Contains(all, string(raw)) {
				t.Errorf("%s of Secret %s is on the other side, too", at[1], at[0])
			}
		}
	}
}

// Deleting the key Secrets and applying once renews the certificate and the keys of a gateway, which restarts. The old
// certificate then has no permissions.
func TestVerifyRotation(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box := seeded(t)
	s := stepstest.Open(t, box, liqo.Guide(), assets, "rotate", nil)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	kubeconfig := func() string {
		encoded := box.Run(
			t, clustertest.Local, "", "-n", "liqo-tenant-rome", "get", "secret", "kubeconfig-controlplane-rome", "-o",
			"jsonpath={.data.kubeconfig}",
		)
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	old := kubeconfig()
	elsewhere := stepstest.Open(
		t, box, liqo.Guide(), assets, "rotate",
		map[string]any{"offloading.clusters": []any{"liqo.io/remote-cluster-id=naples"}},
	)
	narrowed, err := elsewhere.Plan(t.Context(), engine.Scope{Actions: []string{"offloading"}})
	if err != nil {
		t.Fatal(err)
	}
	if items := narrowed.Of(steps.Update); len(items) != 1 ||
		!strings.Contains(items[0].Note, "no longer select rome, so Liqo deletes namespace demo-milan there") {
		t.Errorf("the plan that leaves the provider out: %+v", items)
	}
	box.Run(t, clustertest.Local, "", "-n", "liqo-tenant-rome", "delete", "secret", "liqo-controlplane-key-rome")
	gateway := func() string {
		return box.Run(
			t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "get", "pods", "-l", "networking.liqo.io/component=gateway",
			"-o", "jsonpath={.items[*].metadata.uid}",
		)
	}
	before := gateway()
	box.Run(t, clustertest.Remote, "", "-n", "liqo-tenant-milan", "delete", "secret", "gw-keys")
	again := stepstest.Open(t, box, liqo.Guide(), assets, "rotate", nil)
	p, err := again.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	stepstest.Green(t, again)
	if after := gateway(); before == "" || after == before {
		t.Errorf("the gateway's pods were %q and are %q", before, after)
	}
	if p, err := again.Plan(t.Context(), engine.Scope{}); err != nil || !p.Empty() {
		t.Errorf("there is something left to do: %+v, %v", p.Actions, err)
	}
	now := kubeconfig()
	if now == old {
		t.Fatal("the kubeconfig is the old one")
	}
	for name, c := range map[string]struct {
		kubeconfig string
		may        bool
	}{"old": {old, false}, "new": {now, true}} {
		as, err := box.Open(t, clustertest.Remote, cluster.Options{}).As([]byte(c.kubeconfig))
		if err != nil {
			t.Fatal(err)
		}
		right := permission.Rule{
			Verb: "list", Group: "authentication.liqo.io", Resource: "resourceslices", Namespace: "liqo-tenant-milan",
		}
		d, err := as.Can(t.Context(), right)
		if err != nil || d[0].Allowed != c.may {
			t.Errorf("the %s one: allowed %v, %v", name, d, err)
		}
	}
}

// The provider is permanently gone, and the link names none. The consumer's side can still be undone.
func TestVerifyUndoWithoutAProvider(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	before := stepstest.Snapshot(t, box)
	s := stepstest.Open(t, box, liqo.Guide(), assets, "gone", nil)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	box.Stop(t, clustertest.Remote)
	alone := engine.NewSession(engine.SessionOptions{
		Guide: liqo.Guide(), Link: linkfile.New("liqo", "gone"), Assets: assets,
		Endpoints: map[steps.Side]engine.Endpoint{
			steps.Local:  {Cluster: box.Open(t, clustertest.Local, cluster.Options{}), Name: box.Contexts[clustertest.Local]},
			steps.Remote: {Absent: "the link names no context for the provider"},
		},
	})
	p := stepstest.Undo(t, alone)
	var notes string
	for _, it := range p.Of(steps.Leave) {
		notes += it.What + ": " + it.Note + "\n"
	}
	if !strings.Contains(notes, "the provider's side") || !strings.Contains(notes, "left for the provider's admin") {
		t.Errorf("what is left for the other admin is not said: %s", notes)
	}
	box.Start(t, clustertest.Remote)
	stepstest.Undo(t, s)
	if d := cmp.Diff(before, stepstest.Snapshot(t, box)); d != "" {
		t.Errorf("not as before (-before +after):\n%s", d)
	}
}

// Undo keeps a namespace that existed before the peering, with its contents.
func TestVerifyUndoLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	box.Run(t, clustertest.Local, "", "create", "namespace", "demo")
	box.Run(t, clustertest.Local, "", "-n", "demo", "create", "configmap", "precious")
	defer box.Run(t, clustertest.Local, "", "delete", "namespace", "demo")
	s := stepstest.Open(t, box, liqo.Guide(), assets, "own", nil)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	stepstest.Undo(t, s)
	if got := box.Run(t, clustertest.Local, "", "-n", "demo", "get", "configmap", "precious", "-o", "name"); got == "" {
		t.Error("the ConfigMap is gone")
	}
	if got := box.Run(
		t, clustertest.Local, "", "get", "namespace", "demo", "-o", "jsonpath={.metadata.annotations}",
	); strings.Contains(got, "carrick") {
		t.Errorf("the namespace still carries %s", got)
	}
}
