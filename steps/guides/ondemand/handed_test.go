package ondemand_test

import (
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// root and the users send their tokens to the address in cluster.server. Therefore carrick never adopts the
// address in the peer file. It only shows that address to root.
func TestTheServerComesFromNoFile(t *testing.T) {
	for name, answers := range map[string]map[string]any{
		"not answered": nil, "answered": {"cluster.server": "https://k8s.example.org:6443"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stepstest.StandHanded(t, ondemand.Guide(), assets, "testdata", "healthy", "test", steps.Remote, answers)
			for _, a := range s.Answers(t.Context(), &s.Guide().Steps[0]) {
				if a.Question.Key != "cluster.server" {
					continue
				}
				if want := answers["cluster.server"]; a.Value != want {
					t.Errorf("it is %v, want %v", a.Value, want)
				}
				if !strings.Contains(a.Proposed, "the cluster's file of") ||
					!strings.Contains(a.Proposed, "proposes https://127.0.0.1:") {
					t.Errorf("proposed: %q", a.Proposed)
				}
			}
		})
	}
}
