package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofGuests are the kinds of objects that the guide makes or changes in the guest.
const ofGuests = "namespaces,persistentvolumes,persistentvolumeclaims,storageclasses,serviceaccounts,secrets,configmaps,services,deployments," +
	"clusterroles,clusterrolebindings,roles,rolebindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings,mutatingwebhookconfigurations," +
	"profiles.kubeflow.org,issuers.cert-manager.io,certificates.cert-manager.io"

// withNFS answers that the guest has no shared volumes of its own.
func withNFS(p *terminal) {
	p.types("e")
	p.wait(`Where shared volumes come from`)
	p.types("\x1b[B\x13")
	p.wait(`1 answer saved`)
}

// withTrial answers that a profile is to be followed from its beginning.
func withTrial(p *terminal) {
	p.types("e")
	p.wait(`Make a profile to try it with`)
	p.types("\x1b[C\x13")
	p.wait(`1 answer saved`)
}

var throughPolicy = walk{
	steps:  10,
	titles: map[int]string{2: "Storage", 3: "NFS provisioner", 4: "Claim", 5: "Pod security", 6: "Claims' class", 10: "Profile"},
	takes:  map[int]bool{5: true},
	before: map[int]func(*terminal){2: withNFS, 10: withTrial},
}

// A guest without shared volumes gets them, its claims their class by a policy, and
// a new profile its level, by keys alone; and back to nothing.
func vsphereByPolicy(t *testing.T) {
	w := throughPolicy
	p := demoLent(t, "vsphere")
	p.wait(beginning)
	before := p.objectsOf("sandbox-local", ofGuests)
	p.types("\r")
	w.apply(p, 1, 9)
	p.wait(`(?s)` + w.on(9) + `.*gets the class for +✓ ok.*keeps its class +✓ ok`)
	p.types("n")
	w.apply(p, 10, 10)
	p.wait(`1✓ 2✓ 3✓ 4✓ 5✓ 6✓ 7- 8- 9✓ 10✓ +[0-9]+ ok · [0-9]+ skipped`)
	w.undo(p)
	if d := cmp.Diff(before, p.objectsOf("sandbox-local", ofGuests)); d != "" {
		t.Errorf("the guest is not as it was (-before +after):\n%s", d)
	}
	p.quits()
}

// The same by the extension, a real process that the API server asks. When it is
// gone, the rows that hang on it are red and say what becomes of claims; when it is
// back, they are green, but for a warning where the API server has counted calls that failed since it started.
func vsphereByExtension(t *testing.T) {
	w := walk{
		steps:  10,
		titles: map[int]string{2: "Storage", 3: "NFS provisioner", 4: "Claim", 5: "Pod security", 7: "Extension and certificates", 8: "Extension"},
		takes:  map[int]bool{5: true},
		before: map[int]func(*terminal){2: withNFS},
	}
	p := demoLent(t, "vsphere")
	p.wait(beginning)
	before := p.objectsOf("sandbox-local", ofGuests)
	p.types("\r")
	w.apply(p, 1, 5)
	p.types("n")
	p.wait(w.on(6))
	p.types("e")
	p.wait(`Who exchanges the class of claims`)
	p.types("\x1b[B\x13")
	p.wait(`1 answer saved`)
	p.types("n")
	w.apply(p, 7, 8)
	p.types("n")
	p.wait(`(?s)` + w.on(9) + `.*1✓ 2✓ 3✓ 4✓ 5✓ 6✓ 7✓ 8[✓!] 9✓ 10✓ +[0-9]+ ok · (1 warning · )?[0-9]+ skipped`)
	p.kubectl("sandbox-local", "-n", "vsphere-extensions", "scale", "deployment", "vsphere-extensions", "--replicas=0")
	p.wait(`gets the class for +✗ FAIL`)
	p.wait(`misplaces no claim +✗ FAIL`)
	p.types("/misplaces\r")
	p.wait(`is passed over, and nobody is told \(failurePolicy\s+Ignore\): shared\s+claims\s+get\s+vsphere-policy`)
	p.types("\x1b")
	p.wait(`(?s)` + w.on(9) + `.*keeps its class`)
	p.types("8")
	p.wait(`(?s)` + w.on(8) + `.*the extension runs +✗ FAIL`)
	p.kubectl("sandbox-local", "-n", "vsphere-extensions", "scale", "deployment", "vsphere-extensions", "--replicas=2")
	p.wait(`the extension runs +✓ ok`)
	p.types("n")
	p.wait(`1✓ 2✓ 3✓ 4✓ 5✓ 6✓ 7✓ 8[✓!] 9✓ 10✓ +[0-9]+ ok`)
	p.types("n")
	p.wait(w.on(10))
	w.undo(p)
	if d := cmp.Diff(before, p.objectsOf("sandbox-local", ofGuests)); d != "" {
		t.Errorf("the guest is not as it was (-before +after):\n%s", d)
	}
	p.quits()
}
