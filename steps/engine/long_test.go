package engine_test

import (
	"context"
	"strings"
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/cluster/clustertest/hostile"
	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// A finding can quote untrusted text of any length, with escape sequences.
func TestHostileVerdictIsShortAndClean(t *testing.T) {
	for name, text := range hostile.Texts {
		cases.Run(t, "hostile", "a verdict: "+name, func(t *testing.T) {
			g := guide(
				"quotes", steps.Role{Name: "a", Kind: steps.Host}, steps.Role{Name: "b", Kind: steps.Host},
				steps.Step{Checks: []steps.Check{{
					Name: "quotes", Title: "q", Why: "w", On: steps.Local,
					Run: func(context.Context, steps.Env) steps.Result { return steps.Failed(text+text, text) },
				}}},
			)
			host, err := host.New(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			s := engine.NewSession(engine.SessionOptions{
				Guide: g, Link: linkfile.New("quotes", "a"), Endpoints: map[steps.Side]engine.Endpoint{steps.Local: {Host: host}},
			})
			defer s.Close()
			r, _ := s.Probe(t.Context(), steps.Cell{Step: "one", Check: "quotes", Side: steps.Local})
			if bad := hostile.Unfit(r.Found + r.Fix); bad != "" || len([]rune(r.Found)) > 2001 {
				t.Errorf("%s, %d characters", bad, len([]rune(r.Found)))
			}
			if r.Status != steps.Fail || strings.TrimSpace(r.Found) == "" {
				t.Errorf("%s %q", r.Status, r.Found)
			}
		})
	}
}
