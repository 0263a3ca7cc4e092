package vsphere_test

import (
	"fmt"
	"testing"

	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// Any user of a namespace can create pods and claims with this link's labels. The test namespace
// and the test image are adopted only from objects in the link's inventory.
func TestOnlyTriesOfTheInventoryAreAdopted(t *testing.T) {
	const planted = `
apiVersion: v1
kind: Pod
metadata:
  name: carrick-test-a
  namespace: a-tenant
  uid: 11111111-0000-0000-0000-0000000000d1
  labels: {carrick/link.test: claim-pods}
  annotations: {carrick/created-by: test}
spec: {containers: [{name: a, image: registry.example.org/tenant:1}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: carrick-test-claim
  namespace: a-tenant
  uid: 11111111-0000-0000-0000-0000000000d2
  labels: {carrick/link.test: claim}
  annotations: {carrick/created-by: test}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: carrick-test-native
  namespace: a-tenant
  uid: 11111111-0000-0000-0000-0000000000d3
  labels: {carrick/link.test: native-try}
  annotations: {carrick/created-by: test}
`
	entry := func(kind, name, uid string) string {
		return `'[{"apiVersion":"v1","kind":"` + kind + `","namespace":"a-tenant","name":"` + name +
			`","uid":"11111111-0000-0000-0000-0000000000` + uid + `","created":true}]'`
	}
	entered := planted + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: carrick:test
  annotations:
    carrick/inventory.claim-pods: ` + entry("Pod", "carrick-test-a", "d1") + `
    carrick/inventory.claim: ` + entry("PersistentVolumeClaim", "carrick-test-claim", "d2") + `
    carrick/inventory.native-try: ` + entry("PersistentVolumeClaim", "carrick-test-native", "d3") + `
`
	for name, c := range map[string]struct{ local, want string }{
		"planted":          {planted, "carrick-rwx, false, false, docker.io/library/busybox:stable"},
		"in the inventory": {entered, "a-tenant, true, true, registry.example.org/tenant:1"},
	} {
		s := stepstest.StandWith(t, vsphere.Guide(), assets, "testdata", "healthy", "-- local --\n"+c.local)
		found, err := s.Adopt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range found {
			if a.Why != "" {
				t.Errorf("%s: %s is not found out: %s", name, a.Question.Key, a.Why)
			}
		}
		got := map[string]any{}
		for i := range s.Guide().Steps {
			for _, a := range s.Answers(t.Context(), &s.Guide().Steps[i]) {
				got[a.Question.Key] = a.Value
			}
		}
		text := fmt.Sprintf("%v, %v, %v, %v",
			got["storage.namespace"], got["storage.test"], got["claim.pods"], got["claim.image"])
		if text != c.want {
			t.Errorf("%s: adopted are %s, want %s", name, text, c.want)
		}
	}
}
