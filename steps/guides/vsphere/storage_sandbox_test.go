package vsphere_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// seeded returns a sandbox with a guest cluster, its Supervisor, an NFS server and the fault. If
// fault is "", nothing is wrong.
func seeded(t *testing.T, fault string) *clustertest.Sandbox {
	t.Helper()
	box := clustertest.Start(t)
	if fault != "" {
		box.SeedFault(t, "vsphere", fault)
		return box
	}
	box.Reset(t)
	box.Seed(t, "vsphere")
	return box
}

// Each way sets up shared volumes until the test claim is bound, and then undoes everything.
func TestVerifyStorageCycles(t *testing.T) {
	ways := map[string]map[string]any{
		"pods": {"claim.pods": true, "nfs.options": []string{}},
		"elsewhere": {
			"storage.test": false, "storage.class": "shared", "nfs.release": "shared", "nfs.namespace": "shared-nfs",
			"mutation.method": "none", "claim.pods": false,
		},
	}
	stepstest.Live(t, "cycle", stepstest.Except(ways, nil), func(t *testing.T, _ *clustertest.Sandbox, name string) {
		box := seeded(t, "")
		ways[name]["storage.source"] = "nfs"
		given := stepstest.Given(t, box, vsphere.Guide(), ways[name])
		stepstest.CycleOver(t, box, vsphere.Guide(), assets, name, given)
	})
}
