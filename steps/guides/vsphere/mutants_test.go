package vsphere_test

import (
	"testing"

	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

func TestVerifyMutants(t *testing.T) {
	stepstest.Mutants(t, vsphere.Guide(), assets, "testdata", harmless)
}

// harmless lists changes that no check has to detect.
var harmless = []stepstest.Harmless{
	{
		Where: `local ConfigMap kubeflow/namespace-labels-data-.*: data one more`,
		Why:   "the profile controller reads the key namespace-labels.yaml and no other",
	},
	{
		Where: `local StorageClass nfs-client: volumeBindingMode altered`,
		Why:   "API servers know Immediate and WaitForFirstConsumer, and of an unknown mode the class would not exist",
	},
	{
		Where: `local carrick-rwx: a (LimitRange|NetworkPolicy that .* everything) added`,
		Why:   "only claims and pods of trials are there, and trials say what became of them",
	},
	{
		Where: `local kubeflow: a .* added`,
		Why:   "the namespace is Kubeflow's own: carrick writes one key of a ConfigMap there and runs nothing",
	},
}
