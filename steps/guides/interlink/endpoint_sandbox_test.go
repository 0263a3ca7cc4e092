package interlink_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// endpointHalf returns the guide with only the steps that create and check the endpoint, and the step plugin.
func endpointHalf() *steps.Guide {
	g := interlink.Guide()
	var kept []steps.Step
	for _, s := range g.Steps {
		switch s.Name {
		case "sides":
			s.Checks = []steps.Check{*checkOf(g, "reachable"), *checkOf(g, "signed-in")}
		case "exposure", "certificates", "proxy", "endpoint", "plugin":
		case "config":
			s.Checks, s.Actions = nil, nil
		default:
			continue
		}
		kept = append(kept, s)
	}
	g.Steps, g.Undo = kept, nil
	return g
}

func checkOf(g *steps.Guide, name string) *steps.Check {
	c, _ := g.Check(name)
	return c
}

// apply creates a working endpoint on a cluster without one, and undo restores the initial state of the cluster.
func TestVerifyEndpointComesAndGoes(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	for name, more := range map[string]map[string]any{
		"balancer-by-cert-manager": {"exposure.type": "LoadBalancer", "cert.source": "cert-manager"},
		"own-node-port":            {"exposure.type": "NodePort", "cert.source": "own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := clustertest.Start(t)
			box.Reset(t)
			box.Seed(t, "interlink")
			before := stepstest.Snapshot(t, box)
			answers := map[string]any{}
			for k, v := range box.Answers {
				answers[k] = v
			}
			answers["exposure.sources"] = []string{"172.30.0.0/16"}
			delete(answers, "test.watch")
			maps.Copy(answers, more)
			s := stepstest.Open(t, box, endpointHalf(), assets, "here", answers)
			stepstest.Apply(t, s)
			stepstest.Green(t, s)
			again, err := s.Plan(t.Context(), engine.Scope{})
			if err != nil || !again.Empty() {
				t.Errorf("a second apply changes something: %v %+v", err, again)
			}
			stepstest.Undo(t, s)
			if diff := cmp.Diff(before, stepstest.Snapshot(t, box)); diff != "" {
				t.Errorf("undo leaves (-before +after):\n%s", diff)
			}
		})
	}
}
