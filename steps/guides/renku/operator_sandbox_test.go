package renku_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// With what Renku tells of itself nothing has to be answered: the
// step installs both charts in its versions, copies the CA, comes to hold, and
// goes without a trace.
func TestVerifyOperatorAndDriverComeAndGo(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box := seeded(t)
	answers := site(t, box, map[string]any{"sessions.namespace": "operated"})
	s := stepstest.Open(t, box, renku.Guide(), assets, "operated", answers)
	before := stepstest.Snapshot(t, box)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	for _, check := range []string{
		"session-crd", "session-crd-equal", "session-crd-owner", "operator-ready", "operator-version", "rclone-storage-class",
		"same-site", "driver-version", "pod-security-csi", "csi-on-nodes", "csi-kubelet-dir", "custom-cas-exist",
	} {
		if v := passed(t, s, check, steps.Remote); v.Status != steps.Pass {
			t.Errorf("%s: %v %s", check, v.Status, v.Found)
		}
	}
	again, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if !again.Empty() {
		t.Errorf("a second apply would change: %+v", again.Actions)
	}
	stepstest.Undo(t, s)
	after := stepstest.Snapshot(t, box)
	for k := range after {
		if _, was := before[k]; !was {
			t.Errorf("left behind: %s", k)
		}
	}
	for k := range before {
		if _, is := after[k]; !is {
			t.Errorf("taken away: %s", k)
		}
	}
}

// A definition that stood before is not touched, and stays.
func TestVerifyADefinitionThatStoodStays(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	crd := box.Run(
		t, clustertest.Remote, "", "get", "crd", "--ignore-not-found", "-o", "name", "amaltheasessions.amalthea.dev",
	)
	if crd != "" {
		t.Fatalf("another test left %s", crd)
	}
	spec := box.Run(t, clustertest.Local, "", "get", "crd", "amaltheasessions.amalthea.dev", "-o", "jsonpath={.spec}")
	plain := `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "amaltheasessions.amalthea.dev"}, "spec": ` + spec + "}"
	box.Run(t, clustertest.Remote, plain, "create", "-f", "-")
	defer box.Run(t, clustertest.Remote, "", "delete", "crd", "amaltheasessions.amalthea.dev")
	s := stepstest.Open(
		t, box, renku.Guide(), assets, "stood", site(t, box, map[string]any{"sessions.namespace": "stood-sessions"}),
	)
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	stepstest.Undo(t, s)
	if got := box.Run(
		t, clustertest.Remote, "", "get", "crd", "amaltheasessions.amalthea.dev", "-o",
		"jsonpath={.metadata.labels}{.metadata.annotations}",
	); got != "" {
		t.Errorf("the definition carries %s", got)
	}
}
