package interlink_test

import (
	"path/filepath"
	"testing"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// chartVersion is the version under which upstream publishes the chart. The chart in the repository has no version.
const chartVersion = "0.6.2-pre3"

// TestUpstreamChart upgrades the sandbox's release to upstream's own chart, whose configuration carrick then edits.
func TestUpstreamChart(t *testing.T) {
	src := upstream.Find(t, "interlink-helm-chart")
	charts := t.TempDir()
	src.Chart(t, "interlink", charts, chartVersion)
	box := seeded(t, "")
	c := box.Open(t, clustertest.Local, cluster.Options{})
	upgrade := func(t *testing.T, more map[string]any) {
		t.Helper()
		values := map[string]any{"address": "https://edge.sandbox.example", "port": 30443}
		for k, v := range more {
			values[k] = v
		}
		err := chart.Install(t.Context(), c, chart.Request{
			Name: "virtual-node", Namespace: "interlink", Manager: "helm", TakeOver: true,
			Source: chart.Source(filepath.Join(charts, "interlink")), Chart: "interlink",
			Values: map[string]any{
				"nodeName": "virtual-node", "interlink": values,
				"virtualNode": map[string]any{"image": "ghcr.io/interlink-hq/interlink/virtual-kubelet-inttw:0.6.2-pre3"},
			},
		}, func(text string) { t.Log(text) })
		if err != nil {
			t.Fatal(err)
		}
	}
	upgrade(t, nil)
	answers := stepstest.Given(t, box, interlink.Guide(), ways["as-it-comes"].more)
	src.Try(t, "its configuration is edited: apply, check, undo to what it was", func(t *testing.T) {
		stepstest.CycleOver(t, box, interlink.Guide(), assets, "upstream", answers)
	})
	src.Try(t, "a CA among its values breaks its configuration; named, and mended by the fix", func(t *testing.T) {
		upgrade(t, map[string]any{"kubernetesApiCaCrt": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"})
		x := stepstest.SiteOf(t, box, interlink.Guide(), assets, false, answers)
		x.Finds([]stepstest.Finding{
			{Check: "config-parses", Found: "the chart indented the CA incorrectly", Fixed: true},
			{Check: "chart-release", Found: "has interlink.kubernetesApiCaCrt set", Fix: "--set interlink.kubernetesApiCaCrt="},
		})
	})
}
