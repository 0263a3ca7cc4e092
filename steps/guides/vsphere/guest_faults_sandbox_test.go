package vsphere_test

import (
	"maps"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// guestFaults are faults of pod security, the class of claims and profiles that a printed fix mends, and which checks
// find them. What is said of the others is in their recorded states.
var guestFaults = map[string]struct {
	says []stepstest.Finding
	more map[string]any // answers
}{
	"labels-missing": {says: []stepstest.Finding{
		{
			Check: "labels-file", Found: "does not set pod-security.kubernetes.io/enforce", Fix: "--step security",
			Fixed: true,
		},
		{Check: "profile-levels", Found: "have no level: alice, bob", Fix: "--step security", Fixed: true},
	}},
	"page-psp-leftovers": {says: []stepstest.Finding{
		{
			Check: "psp-leftovers", Found: "alice/rb-all-sa_ns-alice, bob/rb-all-sa_ns-bob",
			Fix: "delete rolebinding rb-all-sa_ns-alice", Fixed: true,
		},
	}},
	"policy-takes-all": {says: []stepstest.Finding{
		{
			Check: "policy-exists", Found: "also changes the class of single-node claims", Fix: "--step mutation",
			Fixed: true,
		},
		{Check: "rwo-keeps-class", Found: "gets nfs-client", Fix: "--step mutation", Fixed: true},
		{Check: "static-keeps", Found: "does not find its volume", Fix: "--step mutation", Fixed: true},
	}},
	"policy-unbound": {says: []stepstest.Finding{
		{Check: "policy-exists", Found: "so the policy has no effect", Fix: "--step mutation", Fixed: true},
		{
			Check: "rwx-gets-class", Found: "gets vsphere-policy in alice instead of nfs-client", Fix: "--step mutation",
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

// liveGuestFaults are those that make test tries on real control planes: admission, and a pod that is refused.
var liveGuestFaults = []string{"policy-unbound", "restricted-namespace"}

func TestLiveFaultsOfAGuest(t *testing.T) { stepstest.Live(t, "live", liveGuestFaults, findsAndFixes) }

func TestVerifyLiveFaultsOfAGuest(t *testing.T) {
	stepstest.Live(t, "live", stepstest.Except(guestFaults, liveGuestFaults), findsAndFixes)
}

// findsAndFixes wants the checks to name a fault, and their printed fixes to mend it.
func findsAndFixes(t *testing.T, box *clustertest.Sandbox, name string) {
	f := guestFaults[name]
	box.SeedFault(t, "vsphere", name)
	x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, true, maps.Clone(f.more))
	x.Finds(f.says)
}
