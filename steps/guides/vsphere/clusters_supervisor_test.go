package vsphere

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func declared(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhatASupervisorDeclares(t *testing.T) {
	for _, tc := range []struct {
		situation string
		read      func(*unstructured.Unstructured) guest
		text      string
		want      guest
	}{
		{
			"a TanzuKubernetesCluster of v1alpha1", fromTKC,
			`{spec: {distribution: {version: v1.18, fullVersion: v1.18.5+vmware.1}, settings: {storage: {defaultClass: gold, classes: [gold]}}}, status: {clusterApiStatus: {apiEndpoints: [{host: 10.0.0.1, port: 6443}]}}}`,
			guest{
				class: "gold", classes: []string{"gold"}, version: "v1.18.5+vmware.1", endpoint: "10.0.0.1:6443",
				classField: "spec.settings.storage.defaultClass",
			},
		},
		{
			"a TanzuKubernetesCluster of v1alpha3", fromTKC,
			`{spec: {topology: {controlPlane: {tkr: {reference: {name: v1.23.8---vmware.2-tkg.2-zshippable}}}}, settings: {storage: {defaultClass: gold}}}, status: {apiEndpoints: [{host: 10.0.0.1, port: 6444}]}}`,
			guest{
				class: "gold", version: "v1.23.8---vmware.2-tkg.2-zshippable", endpoint: "10.0.0.1:6444",
				classField: "spec.settings.storage.defaultClass",
			},
		},
		{
			"a Cluster of TKG's class", fromCluster,
			`{spec: {controlPlaneEndpoint: {host: api.example.org}, topology: {version: v1.26.5+vmware.2, variables: [{name: defaultStorageClass, value: gold}, {name: storageClasses, value: [gold, silver]}, {name: vmClass, value: best-effort}]}}}`,
			guest{
				class: "gold", classes: []string{"gold", "silver"}, version: "v1.26.5+vmware.2", endpoint: "api.example.org:6443",
				classField: "spec.topology.variables, defaultStorageClass",
			},
		},
		{
			"a Cluster of a newer class", fromCluster,
			`{spec: {topology: {variables: [{name: vsphereOptions, value: {persistentVolumes: {defaultStorageClass: gold, availableStorageClasses: [gold]}}}]}}}`,
			guest{
				class: "gold", classes: []string{"gold"},
				classField: "spec.topology.variables, vsphereOptions.persistentVolumes.defaultStorageClass",
			},
		},
		{
			"nothing of it", fromCluster, `{spec: {topology: {variables: [1, {name: defaultStorageClass, value: 3}]}}}`,
			guest{classField: "spec.topology.variables, defaultStorageClass"},
		},
	} {
		if got := tc.read(declared(t, tc.text)); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.situation, got, tc.want)
		}
	}
}

// A TanzuKubernetesCluster and the Cluster of the same name are one guest. Changes must be made to
// the TanzuKubernetesCluster.
func TestOneGuestDeclaredTwiceIsOne(t *testing.T) {
	t.Parallel()
	all := joined(nil, guest{resource: "tanzukubernetesclusters", namespace: "ml", name: "a", class: "gold"})
	all = joined(
		all,
		guest{
			resource: "clusters", namespace: "ml", name: "a", class: "silver", endpoint: "10.0.0.1:6443", version: "v1.26.5",
		},
	)
	all = joined(all, guest{resource: "clusters", namespace: "other", name: "a"})
	want := guest{
		resource: "tanzukubernetesclusters", namespace: "ml", name: "a", class: "gold", endpoint: "10.0.0.1:6443",
		version: "v1.26.5",
	}
	if len(all) != 2 || !reflect.DeepEqual(all[0], want) {
		t.Errorf("%+v", all)
	}
}

func TestMinorOf(t *testing.T) {
	for version, want := range map[string]int{
		"1.26": 26, "v1.26.5+vmware.2": 26, "v1.23.8+vmware.2-tkg.2": 23, "1.9": 9, "v2.1": 0, "1": 0, "latest": 0, "": 0,
		"1.26rc": 26, "11.26": 0,
	} {
		if got, ok := minorOf(version); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v", version, got, ok)
		}
	}
}

func TestWhyAMountFailed(t *testing.T) {
	for message, want := range map[string]string{
		"mount.nfs: access denied by server while mounting 10.0.0.9:/srv":                                                  noExport,
		"mount: /x: bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.nfs helper program.": noHelper,
		"mount.nfs: mounting 10.0.0.9:/srv failed, reason given by server: No such file or directory":                      noFolder,
		"mount.nfs4: Connection refused":                                          noWay,
		"mount.nfs: requested NFS version or transport protocol is not supported": noVersion,
		"mount.nfs: an incorrect mount option was specified":                      elseFailed,
	} {
		if got := mountCause(message); got != want {
			t.Errorf("%s: %s, want %s", message, got, want)
		}
	}
}
