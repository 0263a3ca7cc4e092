package vsphere_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// seeded is the sandbox with a guest cluster, its Supervisor and an NFS server, and
// with what is wrong there; "": nothing.
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

// From a guest without shared volumes to a claim of them that is bound, and back to
// nothing, in the ways that the answers allow.
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
