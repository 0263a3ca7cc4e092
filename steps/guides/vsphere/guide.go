// Package vsphere is the guide that prepares a Tanzu guest cluster for Kubeflow and Kale. It sets
// up a StorageClass for volumes that many pods can write to, and a policy or webhook that sets this
// StorageClass on claims. It also sets the pod security level of profile namespaces, so that
// their pods are admitted.
//
// Sources: SoeldnerConsult/vSphere-extensions (additional, src/main/java/de/keeyzar),
// kubeflow/dashboard (components/profile-controller), kubeflow/manifests
// (applications/profiles), kubernetes-sigs/nfs-subdir-external-provisioner (charts),
// cert-manager/cert-manager.
package vsphere

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// Guide returns the guide that prepares a guest cluster for Kubeflow's volumes and pods.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "vsphere", Title: "Kubeflow and Kale on vSphere",
		Renamed: renamed,
		About: "Provides Kubeflow and Kale on a Tanzu guest cluster with volumes that many pods can write to, and " +
			"configures pod security so that their pods can start. Tries the cluster's own file volumes first, then NFS. Sets " +
			"the StorageClass of claims with a policy or a webhook, whichever the cluster serves, and checks the namespaces " +
			"of profiles.",
		Page:   page,
		Readme: readme,
		Sides: map[steps.Side]steps.Role{
			steps.Local:  {Name: "guest", Kind: steps.Cluster},
			steps.Remote: {Name: "supervisor", Kind: steps.Cluster, Optional: true},
		},
		Steps: []steps.Step{
			clusters(),
			storage(),
			nfs(),
			claim(),
			security(),
			mutation(),
			certificates(),
			extension(),
			function(),
			profile(),
		},
		// Undo runs in the reverse order of apply. It deletes the webhook before the extension that serves it.
		// Otherwise API calls would fail, because the webhook would not answer.
		Undo: nil,
	}
}
