package renku_test

import (
	"fmt"
	"testing"

	"carrick/steps"
	"carrick/steps/renku"
	"carrick/steps/stepstest"
)

// defaults are the answers of a state that nobody gave, and from where they are.
func defaults(t *testing.T, state string) map[string]string {
	t.Helper()
	g := renku.Guide()
	s := stepstest.Stand(t, g, assets, "testdata", state)
	out := map[string]string{}
	for i := range g.Steps {
		for _, a := range s.Answers(t.Context(), &g.Steps[i]) {
			if a.From == "given" {
				continue
			}
			out[a.Question.Key] = fmt.Sprintf("%v | %s", a.Value, a.From)
			if a.Err != nil {
				out[a.Question.Key] = "error: " + steps.Unseen(a.Err).Found
			}
		}
	}
	return out
}

// What the clusters tell stands as the default of what is asked.
func TestWhatReleasesTellIsNotAskedFor(t *testing.T) {
	got := defaults(t, "discovered")
	for key, want := range map[string]string{
		"renku.domain":     "127.0.0.1 | Renku's Helm release",
		"sessions.host":    "elsewhere.example.org | Renku's login lets it in already",
		"charts.source":    "https://swissdatasciencecenter.github.io/helm-charts | where Renku's charts are published",
		"operator.version": "0.30.2 | what runs on the local cluster",
		"operator.release": "amalthea-sessions | it is there already",
		"driver.version":   "0.6.0 | what runs on the local cluster",
		"driver.release":   "csi-rclone | it is there already",
		"driver.namespace": "csi-rclone | csi-rclone is there already",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// Without a Helm release labels and images tell the versions, and where Renku's
// login lets sessions in is asked for.
func TestWithoutAReleaseTheRestIsAskedFor(t *testing.T) {
	for _, state := range []string{"argo-cd", "releases-unreadable"} {
		got := defaults(t, state)
		for key, want := range map[string]string{
			"operator.version": "0.30.2 | what runs on the local cluster",
			"charts.source":    "https://swissdatasciencecenter.github.io/helm-charts | where Renku's charts are published",
		} {
			if got[key] != want {
				t.Errorf("%s: %s is %q, want %q", state, key, got[key], want)
			}
		}
	}
}
