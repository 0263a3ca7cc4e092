package interlink_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// A test through the proxy is outdated after the proxy's pods have restarted, and the printed fix repeats the test. A
// Job that ran as another user runs again as well.
func TestVerifyWhatWasTriedAges(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "")
	answers := stepstest.Given(t, box, interlink.Guide(), map[string]any{
		"exposure.type": "LoadBalancer", "cert.source": "own", "test.watch": 3,
	})
	x := stepstest.SiteOf(t, box, interlink.Guide(), assets, false, answers)
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

	odd := stepstest.OpenWith(t, interlink.Guide(), assets, "demo", answers, map[steps.Side]engine.Endpoint{
		steps.Local: {
			Cluster: box.Open(t, clustertest.Local, cluster.Options{Around: anonymousJob}),
			Name:    box.Contexts[clustertest.Local],
		},
		steps.Remote: x.Endpoint(steps.Remote),
	})
	p, err := odd.Plan(t.Context(), engine.Scope{Actions: []string{"test-job"}})
	if err != nil {
		t.Fatal(err)
	}
	if it := p.Actions[0].Change.Items[0]; it.Verb != steps.Run || !strings.Contains(it.Note, "output is wrong") {
		t.Errorf("a Job that ran as another user: %+v", it)
	}
}

// anonymousJob replaces the log of the test Job.
func anonymousJob(next http.RoundTripper) http.RoundTripper {
	return stepstest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		got, err := next.RoundTrip(r)
		if err == nil && strings.HasSuffix(r.URL.Path, "/log") && r.URL.Query().Get("container") == "whoami" {
			_ = got.Body.Close()
			got.Body, got.ContentLength = io.NopCloser(strings.NewReader("system:anonymous\n")), -1
		}
		return got, err
	})
}
