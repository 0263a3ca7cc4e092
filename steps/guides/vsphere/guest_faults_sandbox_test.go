package vsphere_test

import (
	"maps"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// guestFaults maps faults of pod security, claims and profiles to the expected findings. Recorded
// states cover the other faults.
var guestFaults = map[string]struct {
	says []stepstest.Finding
	more map[string]any // answers
}{
	"labels-missing": {says: []stepstest.Finding{
		{
			Check: "labels-file", Found: "does not set pod-security.kubernetes.io/enforce", Fix: "--step security",
			Fixed: true,
		},
		{Check: "profile-levels", Found: "have no pod security level: alice, bob", Fix: "--step security", Fixed: true},
	}},
	"page-psp-leftovers": {says: []stepstest.Finding{
		{
			Check: "psp-leftovers", Found: "alice/rb-all-sa_ns-alice, bob/rb-all-sa_ns-bob",
			Fix: "delete rolebinding rb-all-sa_ns-alice", Fixed: true,
		},
	}},
	"policy-takes-all": {says: []stepstest.Finding{
		{
			Check: "policy-exists", Found: "also changes the StorageClass of claims that are not ReadWriteMany",
			Fix:   "--step mutation",
			Fixed: true,
		},
		{Check: "rwo-keeps-class", Found: "gets nfs-client", Fix: "--step mutation", Fixed: true},
		{Check: "static-keeps", Found: "does not find its volume", Fix: "--step mutation", Fixed: true},
	}},
	"policy-unbound": {says: []stepstest.Finding{
		{Check: "policy-exists", Found: "so the policy has no effect", Fix: "--step mutation", Fixed: true},
		{
			Check: "rwx-gets-class", Found: "gets vsphere-policy in namespace alice instead of nfs-client",
			Fix:   "--step mutation",
			Fixed: true,
		},
	}},
	"profile-failed": {says: []stepstest.Finding{
		{
			Check: "profiles-namespaces", Fix: "delete profile carol", Fixed: true,
			Found: "namespace carol belongs to someone.else@example.com, but Profile carol belongs to carol@example.com",
		},
	}},
	"restricted-namespace": {says: []stepstest.Finding{
		{Check: "profile-levels", Found: "is stricter in bob (restricted)", Fix: "label --overwrite namespace bob"},
		{
			Check: "pods-refused", Found: "StatefulSet bob/papers (violates PodSecurity",
			Fix: "rollout restart statefulset papers", Fixed: true,
		},
	}},
	"two-mutators": {says: []stepstest.Finding{
		{
			Check: "one-mutator", Found: "MutatingAdmissionPolicy shared-volumes",
			Fix: "delete mutatingadmissionpolicy shared-volumes", Fixed: true,
		},
	}},
	"claims-pending": {more: map[string]any{"storage.source": "nfs"}, says: []stepstest.Finding{
		{Check: "claims-pending", Found: "alice/kale-marshal-pvc (vsphere-policy)", Fix: "replace --force", Fixed: true},
	}},
}

// liveGuestFaults lists the fault that make test runs on real control planes, because it involves admission.
var liveGuestFaults = []string{"policy-unbound"}

func TestLiveFaultsOfAGuest(t *testing.T) { stepstest.Live(t, "live", liveGuestFaults, findsAndFixes) }

func TestVerifyLiveFaultsOfAGuest(t *testing.T) {
	stepstest.Live(t, "live", stepstest.Except(guestFaults, liveGuestFaults), findsAndFixes)
}

// findsAndFixes verifies that the checks report a fault and that the printed fixes repair it.
func findsAndFixes(t *testing.T, box *clustertest.Sandbox, name string) {
	f := guestFaults[name]
	box.SeedFault(t, "vsphere", name)
	x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, true, maps.Clone(f.more))
	x.Finds(f.says)
}
