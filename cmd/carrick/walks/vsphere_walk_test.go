package walks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cmd/carrick/carricktest"
)

// ofGuests are the kinds of objects that the guide makes or changes in the guest.
const ofGuests = "namespaces,persistentvolumes,persistentvolumeclaims,storageclasses,serviceaccounts,secrets,configmaps,services,deployments," +
	"clusterroles,clusterrolebindings,roles,rolebindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings,mutatingwebhookconfigurations," +
	"profiles.kubeflow.org,issuers.cert-manager.io,certificates.cert-manager.io"

// withNFS answers that the guest has no shared volumes of its own.
func withNFS(p *carricktest.Terminal) {
	p.Types("e")
	p.Wait(`Source of shared volumes`)
	p.Types("\x1b[B\x13")
	p.Wait(`1 answer saved`)
}

// withTrial answers that a profile is to be followed from its beginning.
func withTrial(p *carricktest.Terminal) {
	p.Types("e")
	p.Wait(`Test profile`)
	p.Types("\x1b[C\x13")
	p.Wait(`1 answer saved`)
}

var throughPolicy = carricktest.Walk{
	Steps: 10,
	Titles: map[int]string{
		2: "Storage", 3: "NFS provisioner", 4: "Claim", 5: "Pod security", 6: "Class of claims", 10: "Profile",
	},
	Takes:  map[int]bool{5: true},
	Before: map[int]func(*carricktest.Terminal){2: withNFS, 10: withTrial},
}

// A guest without shared volumes gets them, its claims their class by a policy, and
// a new profile its level, by keys alone; and back to nothing.
func vsphereByPolicy(t *testing.T) {
	w := throughPolicy
	p := carricktest.LentDemo(t, "vsphere")
	p.Wait(carricktest.Beginning)
	before := p.ObjectsOf("sandbox-local", ofGuests)
	p.Types("\r")
	w.Apply(p, 1, 9)
	p.Wait(`(?s)` + w.On(9) + `.*gets the class of shared volumes +✓ ok.*keeps its class +✓ ok`)
	p.Types("n")
	w.Apply(p, 10, 10)
	p.Wait(`1✓ 2✓ 3✓ 4✓ 5✓ 6✓ 7- 8- 9✓ 10✓ +[0-9]+ ok · [0-9]+ skipped`)
	w.Undo(p)
	if d := cmp.Diff(before, p.ObjectsOf("sandbox-local", ofGuests)); d != "" {
		t.Errorf("the guest is not as it was (-before +after):\n%s", d)
	}
	p.Quits()
}

// The same by the extension, a real process that the API server asks. When it is
// gone, the rows that hang on it are red and say what becomes of claims; when it is
// back, they are green, but for a warning where the API server has counted calls that failed since it started.
func vsphereByExtension(t *testing.T) {
	w := carricktest.Walk{
		Steps: 10,
		Titles: map[int]string{
			2: "Storage", 3: "NFS provisioner", 4: "Claim", 5: "Pod security", 7: "Extension and certificates", 8: "Extension",
		},
		Takes:  map[int]bool{5: true},
		Before: map[int]func(*carricktest.Terminal){2: withNFS},
	}
	p := carricktest.LentDemo(t, "vsphere")
	p.Wait(carricktest.Beginning)
	before := p.ObjectsOf("sandbox-local", ofGuests)
	p.Types("\r")
	w.Apply(p, 1, 5)
	p.Types("n")
	p.Wait(w.On(6))
	p.Types("e")
	p.Wait(`Method that sets the class of claims`)
	p.Types("\x1b[B\x13")
	p.Wait(`1 answer saved`)
	p.Types("n")
	w.Apply(p, 7, 8)
	p.Types("n")
	p.Wait(`(?s)` + w.On(9) + `.*1✓ 2✓ 3✓ 4✓ 5✓ 6✓ 7✓ 8[✓!] 9✓ 10✓ +[0-9]+ ok · (1 warning · )?[0-9]+ skipped`)
	p.Kubectl("sandbox-local", "-n", "vsphere-extensions", "scale", "deployment", "vsphere-extensions", "--replicas=0")
	p.Wait(`gets the class of shared volumes +✗ FAIL`)
	p.Wait(`silently misplaced by a failed +(webhook +)?✗ FAIL`)
	p.Types("/misplaced\r")
	p.Wait(`is\s+silently\s+skipped\s+\(failurePolicy\s+Ignore\)\.\s+Shared\s+claims\s+now\s+get\s+vsphere-policy`)
	p.Types("\x1b")
	p.Wait(`(?s)` + w.On(9) + `.*keeps its class`)
	p.Types("8")
	p.Wait(`(?s)` + w.On(8) + `.*The extension runs +✗ FAIL`)
	p.Kubectl("sandbox-local", "-n", "vsphere-extensions", "scale", "deployment", "vsphere-extensions", "--replicas=2")
	p.Wait(`The extension runs +✓ ok`)
	p.Types("n")
	p.Wait(`1✓ 2✓ 3✓ 4✓ 5✓ 6✓ 7✓ 8[✓!] 9✓ 10✓ +[0-9]+ ok`)
	p.Types("n")
	p.Wait(w.On(10))
	w.Undo(p)
	if d := cmp.Diff(before, p.ObjectsOf("sandbox-local", ofGuests)); d != "" {
		t.Errorf("the guest is not as it was (-before +after):\n%s", d)
	}
	p.Quits()
}
