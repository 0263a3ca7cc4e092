package ondemand_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// TestVerifyTheReapersComeAndGo installs both reapers from fake charts with upstream's names and values, verifies that
// they are restricted to users' namespaces, and uninstalls them. The reapers do not run.
func TestVerifyTheReapersComeAndGo(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box := clustertest.Start(t)
	box.Seed(t, "ondemand")
	charts, err := filepath.Abs("../../../cluster/sandbox/standin/charts/files")
	if err != nil {
		t.Fatal(err)
	}
	before := stepstest.Snapshot(t, box)
	s := openCluster(t, box, withoutHost(ondemand.Guide()), "reapers", map[string]any{
		"walltime.enabled": true, "walltime.source": charts, "idle.enabled": true, "idle.source": charts,
		"trial.enabled": true,
	})
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	b, _ := s.Look(t.Context(), s.Guide().Cells())
	for name, step := range map[string]string{
		"reaper-installed": "walltime", "reaper-values": "walltime", "reaper-scope": "walltime", "reaper-bound": "trial",
		"reaper-grantable-permissions": "walltime",
		"prometheus-knows-pods":        "idle", "idle-values": "idle", "idle-regexp": "idle", "idle-ready": "idle",
	} {
		if v := b.Verdict(steps.Cell{Step: step, Check: name, Side: steps.Remote}); v.Status != steps.Pass {
			t.Errorf("%s: %v: %s", name, v.Status, v.Found)
		}
	}
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Empty() {
		t.Errorf("a second apply would change: %+v", p.Actions)
	}
	stepstest.Undo(t, s)
	if d := cmp.Diff(before, stepstest.Snapshot(t, box)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}
