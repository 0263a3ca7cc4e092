package interlink_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// answered returns the string form of all answers of a link that apply, by question.
func answered(t *testing.T, s *engine.Session) map[string]string {
	t.Helper()
	out := map[string]string{}
	for i := range s.Guide().Steps {
		for _, a := range s.Answers(t.Context(), &s.Guide().Steps[i]) {
			if a.Err != nil {
				t.Errorf("%s: %v", a.Question.Key, a.Err)
			}
			if list, many := a.Value.([]string); a.Asked && a.Value != nil && (!many || len(list) > 0) {
				out[a.Question.Key] = fmt.Sprint(a.Value)
			}
		}
	}
	return out
}

// If the link file is lost, carrick adopt discovers the existing set-up with the same answers. It asks for the proxy's
// image and for a hostPort, because other users could have changed them.
func TestVerifyASetUpIsFoundAgain(t *testing.T) {
	setUps := map[string]map[string]any{
		"as-it-comes": {"exposure.type": "LoadBalancer"},
		"otherwise": {
			"exposure.type": "NodePort", "exposure.port": 30444, "exposure.namespace": "jobs-api",
			"exposure.sources": []string{}, "exposure.image": "registry.example.org/nginx-unprivileged:1.29.1",
			"cert.source": "own", "cert.days": 40, "cert.ca-years": 4, "workload.namespace": "kube-public",
			"workload.argo": true,
		},
		"host-port": {"exposure.type": "hostPort", "cert.days": 20},
	}
	stepstest.Live(t, "adopt", stepstest.Except(setUps, nil), func(t *testing.T, _ *clustertest.Sandbox, name string) {
		box := seeded(t, "")
		given := stepstest.Given(t, box, interlink.Guide(), setUps[name])
		made := stepstest.Open(t, box, interlink.Guide(), assets, name, given)
		takeOver(t, made)
		asked := map[string]any{}
		for _, key := range []string{"exposure.image", "exposure.type"} {
			if v, is := setUps[name][key]; is && v != "LoadBalancer" && v != "NodePort" {
				asked[key] = v
			}
		}
		found := stepstest.Open(t, box, interlink.Guide(), assets, name, asked)
		if _, err := found.Adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		want, got := answered(t, made), answered(t, found)
		for _, key := range slices.Sorted(maps.Keys(want)) {
			// the settings of the test are not part of the set-up
			if key != "test.watch" && got[key] != want[key] {
				t.Errorf("%s is %q, and found is %q", key, want[key], got[key])
			}
		}
		stepstest.Undo(t, found)
	})
}

// takeOver applies a link and takes ownership of fields that other managers own, such as the chart's configuration.
func takeOver(t *testing.T, s *engine.Session) {
	t.Helper()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err == nil {
		err = s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// carrick adopt recognizes a set-up that the published guide's commands have created.
func TestVerifyThePublishedChainIsFound(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	box := seeded(t, "page")
	s := stepstest.Open(t, box, interlink.Guide(), assets, "page", nil)
	if _, err := s.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := answered(t, s)
	for key, want := range map[string]string{
		"exposure.mode": "ingress", "exposure.namespace": "ingress-nginx-internal",
		"exposure.address": box.Answers["exposure.address"], "exposure.port": "60443",
		"vk.node": "virtual-node", "vk.namespace": "interlink", "plugin.config": "/root/.interlink/config/SlurmConfig.yaml",
		"plugin.shared-fs": "true", "plugin.unit": "slurm-plugin.service",
	} {
		if got[key] != want {
			t.Errorf("%s is found to be %q, want %q", key, got[key], want)
		}
	}
}

// A user who has followed the published guide can switch to the proxy, the answer that the fixes recommend. carrick
// leaves the published chain unchanged, and only the fault that requires Helm remains. The proxy uses another port,
// because all load balancers of the sandbox share one address.
func TestVerifyFromThePublishedChainToTheProxy(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	x := joined(t, seeded(t, ""), "page", true, nil)
	for key, v := range stepstest.Given(t, x.Box, interlink.Guide(), map[string]any{
		"exposure.mode": "proxy", "exposure.type": "LoadBalancer", "exposure.port": 60444,
	}) {
		if err := x.Answer(key, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Answer("exposure.namespace", nil); err != nil { // the default
		t.Fatal(err)
	}
	takeOver(t, x.Session)
	x.Holds("job-complete", "apply")
	for id, v := range x.Reds() {
		if v.Status != steps.Warn && id != "chart-values@local" {
			t.Errorf("%s: %s: %s", id, v.Status, v.Found)
		}
	}
	x.Box.Run(t, "local", "", "-n", "ingress-nginx-internal", "get", "ingress", "default")
}
