package vsphere_test

import (
	"fmt"
	"testing"

	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

// Whoever can create a Deployment does not choose where volumes come from: only one that a StorageClass names counts, and
// of two that call themselves its provisioner the one that Helm named on the class.
func TestATenantDoesNotChooseTheProvisioner(t *testing.T) {
	provisioner := func(namespace, provides, server string) string {
		return `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nfs, namespace: ` + namespace + `, annotations: {meta.helm.sh/release-name: forged}}
spec:
  template:
    spec:
      containers:
        - name: nfs
          image: registry.example.org/nfs:1
          env:
            - {name: PROVISIONER_NAME, value: ` + provides + `}
            - {name: NFS_SERVER, value: ` + server + `}
            - {name: NFS_PATH, value: /forged}
`
	}
	const (
		class   = "cluster.local/nfs-subdir-external-provisioner"
		byClass = "127.60.0.49, nfs-provisioner"
		nowhere = "<nil>, nfs-provisioner"
	)
	for name, c := range map[string]struct{ local, want string }{
		"the class's own":          {"", byClass},
		"another provisioner":      {provisioner("a-tenant", "forged", "203.0.113.66"), byClass},
		"one of the class's name":  {provisioner("a-tenant", class, "203.0.113.66"), nowhere},
		"Helm names the namespace": {classOf("nfs-provisioner") + provisioner("a-tenant", class, "203.0.113.66"), byClass},
		"Helm names no such one":   {classOf("elsewhere") + provisioner("a-tenant", class, "203.0.113.66"), nowhere},
		"of the class's release, by another name": {
			gone + classOf("nfs-provisioner") + provisioner("nfs-provisioner", "fuseim.pri/ifs", "127.60.0.49") +
				provisioner("a-tenant", "fuseim.pri/ifs", "203.0.113.66"), byClass,
		},
		"of a class without one": {gone + provisioner("a-tenant", "forged", "203.0.113.66"), nowhere},
	} {
		s := stepstest.StandWith(t, vsphere.Guide(), assets, "testdata", "healthy", "-- local --\n"+c.local)
		if err := s.Answer("nfs.server", nil); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for i := range s.Guide().Steps {
			for _, a := range s.Answers(t.Context(), &s.Guide().Steps[i]) {
				got[a.Question.Key] = a.Value
			}
		}
		if text := fmt.Sprintf("%v, %v", got["nfs.server"], got["nfs.namespace"]); text != c.want {
			t.Errorf("%s: the server and the namespace are %s, want %s", name, text, c.want)
		}
	}
}

const gone = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nfs-subdir-external-provisioner, namespace: nfs-provisioner}
$delete: true
`

// classOf is the class, of a release in a namespace.
func classOf(namespace string) string {
	return `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nfs-client, annotations: {meta.helm.sh/release-name: forged, meta.helm.sh/release-namespace: ` + namespace + `}}
`
}
