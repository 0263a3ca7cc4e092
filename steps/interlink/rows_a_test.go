package interlink_test

import (
	"testing"

	"carrick/steps"
	"carrick/steps/interlink"
	"carrick/steps/stepstest"
)

// rowsA are the rows of the virtual kubelet, its configuration, the workload and
// the test.
var rowsA = []stepstest.Row{
	{Number: 1, Asks: "Kubernetes is new enough", Checks: []string{"version"}},
	{Number: 2, Asks: "the virtual node, ready and labelled", Checks: []string{"virtual-node"}},
	{Number: 3, Asks: "a virtual kubelet that hands tokens over, pinned", Checks: []string{"kubelet-image"}},
	{Number: 4, Asks: "it may make tokens, and for whom", Checks: []string{"kubelet-mints", "kubelet-mints-no-more"}},
	{Number: 5, Asks: "a configuration that can be read: the chart's bug", Checks: []string{"config-parses", "chart-release", "chart-values"}},
	{Number: 6, Asks: "address and port, of the endpoint", Checks: []string{"config-address"}},
	{Number: 7, Asks: "started since the configuration changed", Checks: []string{"config-loaded"}},
	{Number: 8, Asks: "projected volumes are handed over", Checks: []string{"projected-volumes"}},
	{Number: 9, Asks: "no tokens in the log", Checks: []string{"log-quiet"}},
	{Number: 14, Asks: "the CA that jobs get, and what it proves", Checks: []string{"config-ca"}},
	{Number: 17, Asks: "a token of the jobs' account is taken through the endpoint", Checks: []string{"asked-through", "rules-same"}},
	{Number: 18, Asks: "a watch longer than a proxy's patience", Checks: []string{"watch-held"}},
	{Number: 27, Asks: "the life that tokens are granted", Checks: []string{"token-life"}},
	{Number: 28, Asks: "the jobs' account: there, mounted, modest", Checks: []string{"account-there", "account-modest", "account-argo"}},
	{Number: 29, Asks: "no pod asks for Linux", Checks: []string{"no-linux-selector"}},
	{Number: 30, Asks: "the test Job, and who it is", Checks: []string{"job-complete", "job-identity", "job-rules"}},
	{Number: 31, Asks: "its image is to be had", Checks: []string{"test-image", "job-complete"}},
	{Number: 32, Asks: "a token dies with its pod", Checks: []string{"pods-not-forced"}},
}

// Every check of these steps belongs to a row, and every row's checks are there,
// with a state for either verdict.
func TestRowsOfTheKubeletAreLookedAt(t *testing.T) {
	shared := map[string]bool{"reachable": true, "signed-in": true, "clock": true, "edge-files": true, "may-make": true}
	g, wanted, named := interlink.Guide(), stepstest.Wanted(t, "testdata"), map[string]bool{}
	for _, r := range rowsA {
		for _, name := range r.Checks {
			named[name] = true
			if c, _ := g.Check(name); c == nil {
				t.Errorf("row %d: there is no check %s", r.Number, name)
			}
			if w := wanted[name]; len(w[steps.Pass]) == 0 || len(w[steps.Fail])+len(w[steps.Warn]) == 0 {
				t.Errorf("row %d: check %s passes in %d states and does not in %d", r.Number, name, len(w[steps.Pass]), len(w[steps.Fail])+len(w[steps.Warn]))
			}
		}
	}
	for _, step := range []string{"sides", "config", "workload", "test"} {
		for _, c := range g.Step(step).Checks {
			if !named[c.Name] && !shared[c.Name] {
				t.Errorf("check %s belongs to no row", c.Name)
			}
		}
	}
}
