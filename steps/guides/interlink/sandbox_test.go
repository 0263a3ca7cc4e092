package interlink_test

import (
	"net/url"
	"slices"
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// seeded returns a sandbox with InterLink as installed by its chart, and with a fault if fault is not "".
func seeded(t *testing.T, fault string) *clustertest.Sandbox {
	t.Helper()
	box := clustertest.Start(t)
	if fault != "" {
		box.SeedFault(t, "interlink", fault)
		return box
	}
	box.Reset(t)
	box.Seed(t, "interlink")
	return box
}

// straight returns the answers of mode direct, in which the endpoint is the API server at the address in its
// kubeconfig.
func straight(t *testing.T, box *clustertest.Sandbox) map[string]any {
	t.Helper()
	at, err := url.Parse(box.Open(t, clustertest.Local, cluster.Options{}).Server())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"exposure.mode": "direct", "exposure.address": at.Hostname()}
}

// ways lists the sets of answers with which a full cycle is tested: apply on a virtual node whose jobs cannot reach the
// API, checks, and undo to the initial state.
var ways = map[string]struct {
	fault  string
	direct bool
	more   map[string]any
}{
	"as-it-comes":     {more: map[string]any{"exposure.type": "LoadBalancer"}},
	"no-cert-manager": {fault: "no-cert-manager", more: map[string]any{"cert.days": 30, "cert.ca-years": 2}},
	"own-ca": {
		more: map[string]any{"cert.source": "own", "exposure.namespace": "jobs-api", "exposure.sources": []string{}},
	},
	"direct":       {direct: true, more: map[string]any{"test.watch": 3}},
	"node-port":    {more: map[string]any{"exposure.type": "NodePort", "exposure.port": 30444}},
	"host-port":    {more: map[string]any{"exposure.type": "hostPort"}},
	"argo":         {more: map[string]any{"workload.argo": true, "workload.namespace": "default", "test.watch": 3}},
	"node-pending": {fault: "node-pending", more: map[string]any{"exposure.type": "NodePort", "test.watch": 3}},
	"no-job":       {more: map[string]any{"test.job": false, "vk.job-hours": 24}},
}

// others lists the actions that the cycle of make test does not undo. The cycle "own-ca" of make verify does.
var others = []string{"own-certificate", "own-ca"}

func TestCycle(t *testing.T) {
	onlyExported := []string{"ingress-files"}
	stepstest.FirstCycle(t, interlink.Guide(), "argo", slices.Concat(onlyExported, others), cycle)
}

func TestVerifyOtherCycles(t *testing.T) {
	stepstest.OtherCycles(t, []string{"own-ca"}, others, cycle)
}

func TestVerifyCycles(t *testing.T) {
	stepstest.Live(t, "cycle", stepstest.Except(ways, []string{"argo", "own-ca"}),
		func(t *testing.T, _ *clustertest.Sandbox, name string) { cycle(t, name) })
}

func cycle(t *testing.T, name string) []string {
	way := ways[name]
	box := seeded(t, way.fault)
	answers := stepstest.Given(t, box, interlink.Guide(), way.more)
	if way.direct {
		delete(answers, "exposure.sources")
		delete(answers, "exposure.port")
		for k, v := range straight(t, box) {
			answers[k] = v
		}
	}
	return stepstest.CycleOver(t, box, interlink.Guide(), assets, name, answers)
}
