package vsphere_test

import (
	"testing"

	"carrick/steps"
	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

// rowsC are the rows of the clusters and of storage.
var rowsC = []stepstest.Row{
	{Number: 1, Asks: "a guest cluster, not the Supervisor", Checks: []string{"guest-cluster", "supervisor-cluster"}},
	{Number: 2, Asks: "Kubernetes is new enough", Checks: []string{"version"}},
	{Number: 12, Asks: "one default class, as it is declared", Checks: []string{"default-class", "declared-class"}},
	{Number: 13, Asks: "the class, and a provisioner of that name that runs", Checks: []string{"rwx-class", "provisioner-ready", "provisioner-name", "page-class"}},
	{Number: 14, Asks: "what is deleted with a claim", Checks: []string{"class-keeps"}},
	{Number: 15, Asks: "the NFS server takes connections, and exports the folder", Checks: []string{"nfs-port", "nfs-export"}},
	{Number: 16, Asks: "the export lets the guest in, and root write", Checks: []string{"nfs-export", "nfs-writes", "claim-events"}},
	{Number: 17, Asks: "nodes have mount.nfs", Checks: []string{"nfs-mount-helper", "claim-events"}},
	{Number: 18, Asks: "a claim is bound, and two pods on two nodes share it", Checks: []string{"claim-bound", "claim-shared", "native-rwx"}},
	{Number: 19, Asks: "the provisioner's rights, and its namespace's level", Checks: []string{"provisioner-rights", "provisioner-level"}},
	{Number: 33, Asks: "no upgrade across 1.25 and 1.26 without levels", Checks: []string{"upgrade-crosses"}},
	{Number: 34, Asks: "tools that the published page needs", Checks: []string{"tools"}},
}

// Every check of these steps belongs to a row, with a state for either verdict.
func TestRowsOfStorageAreLookedAt(t *testing.T) {
	shared := map[string]bool{"reachable": true, "signed-in": true, "clock": true, "two-clusters": true, "may-make": true}
	g, wanted, named := vsphere.Guide(), stepstest.Wanted(t, "testdata"), map[string]bool{}
	for _, r := range rowsC {
		for _, name := range r.Checks {
			named[name] = true
			c, _ := g.Check(name)
			if c == nil {
				t.Errorf("row %d: there is no check %s", r.Number, name)
				continue
			}
			if w := wanted[name]; c.NotChecked == "" && (len(w[steps.Pass]) == 0 || len(w[steps.Fail])+len(w[steps.Warn]) == 0) {
				t.Errorf("row %d: check %s passes in %d states and does not in %d", r.Number, name, len(w[steps.Pass]), len(w[steps.Fail])+len(w[steps.Warn]))
			}
		}
	}
	for _, step := range []string{"clusters", "storage", "nfs", "claim"} {
		for _, c := range g.Step(step).Checks {
			if !named[c.Name] && !shared[c.Name] {
				t.Errorf("check %s belongs to no row", c.Name)
			}
		}
	}
}
