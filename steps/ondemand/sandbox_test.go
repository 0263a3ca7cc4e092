package ondemand_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/ondemand"
	"carrick/steps/stepstest"
)

func seeded(t *testing.T) *clustertest.Sandbox {
	t.Helper()
	box := clustertest.Start(t)
	box.Reset(t)
	box.Seed(t, "ondemand")
	return box
}

// siteAnswers are what the scenario's portal has to be told.
func siteAnswers(box *clustertest.Sandbox, more map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range box.Answers {
		out[key] = v
		if strings.HasSuffix(key, ".use") {
			out[key] = v == "true"
		}
	}
	maps.Copy(out, more)
	return out
}

// ofUsers are the namespaces of who logs in to the scenario's portal, and what is in them: the hook makes those, and
// they stay.
var ofUsers = regexp.MustCompile(`[ /](user|ood)-(alice|bob)(/|$)`).MatchString

// snapshot is all that stands on both sides, but for what is the users'.
func snapshot(t *testing.T, box *clustertest.Sandbox) map[string]string {
	t.Helper()
	out := stepstest.Snapshot(t, box)
	maps.DeleteFunc(out, func(name, _ string) bool { return ofUsers(name) })
	return out
}

// From a web node as its package leaves it and a bare cluster to users who log in, and back to nothing, in the ways
// that the answers allow.
func TestCycle(t *testing.T) {
	// nobody logs in as these, so nobody makes their namespaces but carrick
	trial := map[string]any{"trial.user": "carol", "trial.other": "dave", "trial.make": true}
	for name, more := range map[string]map[string]any{
		"as-it-comes": nil,
		"otherwise": {
			"token.kind": "non-expiring", "registry.use": false, "walltime.use": false, "idle.use": false, "policies.level": "baseline",
			"users.namespace-prefix": "ood-", "cluster.id": "other", "clusterfile.all-namespaces": true,
			"trial.user": "carol", "trial.other": "dave", "trial.make": true,
		},
		"renewed by cron": {"token.renewal": "cron", "registry.use": false, "walltime.use": false, "idle.use": false},
		"a trial":         trial,
	} {
		t.Run(name, func(t *testing.T) {
			box := seeded(t)
			link := strings.ReplaceAll(name, " ", "-")
			s := stepstest.Open(t, box, ondemand.Guide(), assets, link, siteAnswers(box, more))
			before := snapshot(t, box)
			if p := stepstest.Apply(t, s); p.Empty() {
				t.Fatal("there was nothing to do: this proves nothing")
			}
			stepstest.Green(t, s)
			again, err := s.Plan(t.Context(), steps.Scope{})
			if err != nil {
				t.Fatal(err)
			}
			if !again.Empty() {
				t.Errorf("a second apply would change: %+v", again.Actions)
			}
			stepstest.Undo(t, s)
			if d := cmp.Diff(before, snapshot(t, box)); d != "" {
				t.Errorf("undo did not leave things as they were (-before +after):\n%s", d)
			}
		})
	}
}
