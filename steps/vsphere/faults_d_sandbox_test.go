package vsphere_test

import (
	"maps"
	"slices"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

// said is what a check has to say of something that is wrong, and whether its fix,
// as it is printed, is run and has to make it hold.
type said struct {
	check, found, fix string
	mended            bool
}

// guestFaults are the faults of the sandbox that pod security, the class of claims
// and profiles have, and which checks find them.
var guestFaults = map[string]struct {
	says []said
	more map[string]any // answers
}{
	"labels-missing": {says: []said{
		{"labels-file", "says nothing of pod-security.kubernetes.io/enforce", "--step security", true},
		{"profile-levels", "have no level: alice, bob", "--step security", true},
	}},
	"no-istio-cni": {says: []said{
		{"istio-cni", "which refuses nothing", "install istio-cni", false},
	}},
	"page-psp-leftovers": {says: []said{
		{"psp-leftovers", "alice/rb-all-sa_ns-alice, bob/rb-all-sa_ns-bob", "delete rolebinding rb-all-sa_ns-alice", true},
	}},
	"policy-takes-all": {says: []said{
		{"policy-there", "exchanges the class of claims that one node writes to, too", "--step mutation", true},
		{"rwo-keeps-class", "gets nfs-client", "--step mutation", true},
		{"static-keeps", "does not find the volume that was made for it", "--step mutation", true},
	}},
	"policy-unbound": {says: []said{
		{"policy-there", "without it the policy does nothing", "--step mutation", true},
		{"rwx-gets-class", "gets vsphere-policy in alice, and is to get nfs-client", "--step mutation", true},
	}},
	"privileged-pod": {says: []said{
		{"level-warnings", "hostPath volumes", "securityContext", false},
	}},
	"profile-failed": {says: []said{
		{"profiles-namespaces", "namespace carol is of someone.else@example.com, and Profile carol of carol@example.com", "--subresource=status", true},
	}},
	"restricted-namespace": {says: []said{
		{"profile-levels", "narrower are bob (restricted)", "label --overwrite namespace bob", false},
		{"pods-refused", "StatefulSet bob/papers (violates PodSecurity", "rollout restart statefulset papers", true},
	}},
	"two-mutators": {says: []said{
		{"one-mutator", "MutatingAdmissionPolicy shared-volumes", "delete mutatingadmissionpolicy shared-volumes", true},
	}},
	"claims-pending": {more: map[string]any{"storage.source": "nfs"}, says: []said{
		{"claims-pending", "alice/kale-marshal-pvc (vsphere-policy)", "replace --force", true},
	}},
	"webhook-down": {says: []said{
		{"silent-failure", "is passed over, and nobody is told (failurePolicy Ignore)", "--only extension-ready", false},
		{"rwx-gets-class", "gets vsphere-policy", "--only extension-ready", false},
	}},
}

func TestFaultsOfAGuestAreNamedAndMended(t *testing.T) {
	box := clustertest.Start(t)
	for _, name := range slices.Sorted(maps.Keys(guestFaults)) {
		t.Run(name, func(t *testing.T) {
			stepstest.Third(t)
			f := guestFaults[name]
			box.SeedFault(t, "vsphere", name)
			x := stepstest.SiteOf(t, box, vsphere.Guide(), assets, true, maps.Clone(f.more))
			was := map[string]steps.Result{}
			for _, s := range f.says {
				was[s.check] = x.Named(s.check, s.found, s.fix)
			}
			for _, s := range f.says {
				if s.mended {
					x.Mends(s.check, was[s.check])
				}
			}
		})
	}
}
