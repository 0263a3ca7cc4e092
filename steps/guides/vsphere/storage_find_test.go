package vsphere_test

import (
	"fmt"
	"testing"

	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// A tenant that can create Deployments must not choose where volumes come from. A provisioner
// counts only if it can create PersistentVolumes and a StorageClass names it. If two provisioners
// have that name, the namespace that Helm recorded on the StorageClass decides.
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
		tenant  = "a-tenant"
		byClass = "127.60.0.49, nfs-provisioner, nfs"
		nowhere = "<nil>, nfs-provisioner, native"
		without = "<nil>, nfs-provisioner, class" // its volumes are left
	)
	for name, c := range map[string]struct{ local, want string }{
		"the class's own":         {"", byClass},
		"another provisioner":     {provisioner(tenant, "forged", "203.0.113.66"), byClass},
		"another that is bound":   {bound(tenant) + provisioner(tenant, "forged", "203.0.113.66"), byClass},
		"one of the class's name": {provisioner(tenant, class, "203.0.113.66"), byClass},
		"of the class's name, and bound": {
			bound(tenant) + provisioner(tenant, class, "203.0.113.66"), nowhere,
		},
		"Helm names the namespace": {
			classOf("nfs-provisioner") + bound(tenant) + provisioner(tenant, class, "203.0.113.66"), byClass,
		},
		"Helm names no such one": {
			classOf("elsewhere") + bound(tenant) + provisioner(tenant, class, "203.0.113.66"), nowhere,
		},
		"of the class's release, by another name": {
			gone + classOf("nfs-provisioner") + bound("nfs-provisioner") +
				provisioner("nfs-provisioner", "fuseim.pri/ifs", "127.60.0.49") +
				provisioner(tenant, "fuseim.pri/ifs", "203.0.113.66"), byClass,
		},
		"of a class without one": {gone + provisioner(tenant, class, "203.0.113.66"), without},
		"of the guest's own driver": {
			gone + bound(tenant) + provisioner(tenant, "csi.vsphere.vmware.com", "203.0.113.66"), without,
		},
	} {
		s := stepstest.StandWith(t, vsphere.Guide(), assets, "testdata", "healthy", "-- local --\n"+c.local)
		for _, key := range []string{"storage.source", "nfs.server"} {
			if err := s.Answer(key, nil); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]any{}
		for i := range s.Guide().Steps {
			for _, a := range s.Answers(t.Context(), &s.Guide().Steps[i]) {
				got[a.Question.Key] = a.Value
			}
		}
		if text := fmt.Sprintf("%v, %v, %v", got["nfs.server"], got["nfs.namespace"], got["storage.source"]); text != c.want {
			t.Errorf("%s: the server, the namespace and the source are %s, want %s", name, text, c.want)
		}
	}
}

const gone = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nfs-subdir-external-provisioner, namespace: nfs-provisioner}
$delete: true
`

// classOf returns the StorageClass of a Helm release in a namespace.
func classOf(namespace string) string {
	return `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nfs-client, annotations: {meta.helm.sh/release-name: forged, meta.helm.sh/release-namespace: ` +
		namespace + `}}
`
}

// bound returns a ClusterRoleBinding that allows ServiceAccount default of a namespace to create
// PersistentVolumes.
func bound(namespace string) string {
	return `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: run-` + namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nfs-subdir-external-provisioner-runner}
subjects: [{kind: ServiceAccount, name: default, namespace: ` + namespace + `}]
`
}
