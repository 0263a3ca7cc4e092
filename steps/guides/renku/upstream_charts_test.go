package renku_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

const amaltheaChart = "helm-chart/amalthea-sessions"

// TestUpstreamCharts installs Renku's own charts on the remote cluster. The local cluster gets the definitions of the
// same commit, as both clusters need the same ones.
func TestUpstreamCharts(t *testing.T) {
	amalthea, rclone := upstream.Find(t, "amalthea"), upstream.Find(t, "csi-rclone")
	charts := t.TempDir()
	driver := rclone.Chart(t, "deploy/csi-rclone", charts, "0.6.0")
	operator := amalthea.Chart(t, amaltheaChart, charts, "0.30.2")
	box := seeded(t)
	definitions, err := filepath.Glob(filepath.Join(amalthea.Dir, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatalf("the project has no definitions: %v", err)
	}
	for _, path := range definitions {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		box.Run(t, clustertest.Local, string(text), "apply", "--server-side", "--force-conflicts", "-f", "-")
	}
	s := stepstest.Open(t, box, renku.Guide(), assets, "upstream", site(t, box, map[string]any{
		"sessions.namespace": "upstream", "charts.source": charts, "operator.version": operator, "driver.version": driver,
	}))
	before := stepstest.Snapshot(t, box)
	stepstest.Apply(t, s)
	rows := func(names ...string) func(*testing.T) {
		return func(t *testing.T) {
			for _, name := range names {
				if v := passed(t, s, name, steps.Remote); v.Status != steps.Pass {
					t.Errorf("%s: %v %s", name, v.Status, v.Found)
				}
			}
		}
	}
	amalthea.Try(t, "its chart is installed, and the checks on it pass",
		rows("session-crd", "session-crd-equal", "session-crd-owner", "operator-ready", "operator-version"))
	rclone.Try(t, "its chart is installed, and the checks on it pass",
		rows("rclone-storage-class", "driver-version", "pod-security-csi", "csi-on-nodes", "csi-kubelet-dir"))
	stepstest.Green(t, s)
	again, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || !again.Empty() {
		t.Errorf("a second apply would change: %+v, %v", again, err)
	}
	amalthea.Try(t, "undo leaves nothing of the charts", func(t *testing.T) {
		stepstest.Undo(t, s)
		if d := cmp.Diff(before, stepstest.Snapshot(t, box)); d != "" {
			t.Errorf("(-before +after):\n%s", d)
		}
	})
}
