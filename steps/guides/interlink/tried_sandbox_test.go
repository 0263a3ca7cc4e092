package interlink_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// A test through the proxy is outdated after the proxy's pods have restarted, and the printed fix repeats the test.
func TestVerifyWhatWasTriedAges(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "")
	x := stepstest.SiteOf(
		t, box, interlink.Guide(), assets, false, stepstest.Given(t, box, interlink.Guide(), map[string]any{
			"exposure.type": "LoadBalancer", "cert.source": "own", "test.watch": 3,
		}),
	)
	takeOver(t, x.Session)
	x.Holds("job-complete", "apply")
	box.Run(t, clustertest.Local, "", "-n", "interlink-api", "rollout", "restart", "deployment", "k8s-api-proxy")
	box.Run(
		t, clustertest.Local, "", "-n", "interlink-api", "rollout", "status", "--timeout=300s", "deployment", "k8s-api-proxy",
	)
	const since, again = "before the proxy's pods were started", "--step test"
	was := map[string]steps.Result{}
	all := []string{"requests-pass", "watch-held", "job-complete"}
	for _, check := range all {
		was[check] = x.Named(check, since, again)
	}
	for _, check := range all {
		x.Mends(check, was[check])
	}
}
