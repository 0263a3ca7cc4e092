package vsphere_test

import (
	"path/filepath"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	profiles := stepstest.Upstream(
		t, "../../..", "kubeflow/kubeflow.org_profiles.yaml",
		"the assets of Kubeflow's and cert-manager's own kinds, and with them all others",
	)
	box.Reset(t)
	stepstest.Define(t, box, steps.Local, profiles)
	folder := stepstest.Upstream(
		t, "../../..", "cert-manager", "the assets of cert-manager's own kinds, and with them all others",
	)
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%s holds %d definitions, %v", folder, len(files), err)
	}
	stepstest.Define(t, box, steps.Local, files...)
	stepstest.Conformance(t, box, vsphere.Guide(), assets, "testdata", example)
}
