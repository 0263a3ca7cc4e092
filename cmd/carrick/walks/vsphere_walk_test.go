package walks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cmd/carrick/carricktest"
)

// ofGuests lists the kinds of objects that the guide creates or changes in the guest.
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

// withTrial answers that the guide must test a profile from its creation on.
func withTrial(p *carricktest.Terminal) {
	p.Types("e")
	p.Wait(`Test profile`)
	p.Types("\x1b[C\x13")
	p.Wait(`1 answer saved`)
}

var throughPolicy = carricktest.Walk{
	Steps: 10,
	Titles: map[int]string{
		2: "Storage", 3: "NFS provisioner", 4: "Claim", 5: "Pod security", 6: "StorageClass of claims", 10: "Profile",
	},
	Takes:  map[int]bool{5: true},
	Before: map[int]func(*carricktest.Terminal){2: withNFS, 10: withTrial},
}

// A guest without shared volumes gets them. By a policy, its claims get their StorageClass and a new profile gets its
// pod security level. The walk uses only keys, and ends with an undo.
func vsphereByPolicy(t *testing.T) {
	w := throughPolicy
	p := carricktest.LentDemo(t, "vsphere")
	p.Wait(carricktest.Beginning)
	before := p.ObjectsOf("sandbox-local", ofGuests)
	p.Types("\r")
	w.Apply(p, 1, 9)
	p.Wait(`(?s)` + w.On(9) + `.*gets the shared[ ┄]+(StorageClass[ ┄]+)?✓ ok.*keeps its[ ┄]+(StorageClass[ ┄]+)?✓ ok`)
	p.Types("n")
	w.Apply(p, 10, 10)
	p.Wait(`1✓ 2✓ 3✓ 4✓ 5✓ 6✓ 7– 8– 9✓ 10✓ +[0-9]+ ok( · [0-9]+ skipped)? +live`)
	w.Undo(p)
	if d := cmp.Diff(before, p.ObjectsOf("sandbox-local", ofGuests)); d != "" {
		t.Errorf("the guest is not as it was (-before +after):\n%s", d)
	}
	p.Quits()
}

// The same walk with the extension, a real process to which the API server sends reviews. While the process is down,
// the checks that depend on it fail and say how claims are affected. When it runs again, they pass, except for a
// warning if the API server has counted failed calls since it started.
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
	p.Wait(`Method that sets the StorageClass of claims`)
	p.Types("\x1b[B\x13")
	p.Wait(`1 answer saved`)
	p.Types("n")
	w.Apply(p, 7, 8)
	p.Types("n")
	p.Wait(`(?s)` + w.On(9) + `.*1✓ 2✓ 3✓ 4✓ 5✓ 6✓ 7✓ 8[✓!] 9✓ 10✓ +[0-9]+ ok( · 1 warning)?( · [0-9]+ skipped)? +live`)
	p.Kubectl("sandbox-local", "-n", "vsphere-extensions", "scale", "deployment", "vsphere-extensions", "--replicas=0")
	p.Wait(`gets the shared[ ┄]+(StorageClass[ ┄]+)?✗ FAIL`)
	p.Wait(`silently bypasses the[ ┄]+(webhook[ ┄]+)?✗ FAIL`)
	p.Types("/bypasses\r")
	p.Wait(`is\s+silently\s+skipped\s+\(failurePolicy\s+Ignore\)\.\s+ReadWriteMany\s+claims\s+now\s+get\s+vsphere-policy`)
	p.Types("\x1b")
	p.Wait(`(?s)` + w.On(9) + `.*keeps its`)
	p.Types("8")
	p.Wait(`(?s)` + w.On(8) + `.*The extension runs[ ┄]+✗ FAIL`)
	p.Kubectl("sandbox-local", "-n", "vsphere-extensions", "scale", "deployment", "vsphere-extensions", "--replicas=2")
	p.Wait(`The extension runs[ ┄]+✓ ok`)
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
