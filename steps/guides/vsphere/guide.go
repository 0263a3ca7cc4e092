// Package vsphere is the guide that prepares a Tanzu guest cluster for Kubeflow and Kale. It sets
// up a StorageClass for volumes that many pods can write to, a policy or webhook that assigns this
// class to claims, and the Pod Security level of the profiles' namespaces, so that their pods are
// admitted.
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

// Guide prepares a guest cluster for Kubeflow's volumes and pods.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "vsphere", Title: "Kubeflow and Kale on vSphere",
		Renamed: renamed,
		About: "Gives Kubeflow and Kale on a Tanzu guest cluster volumes that many pods can write to, and lets their pods " +
			"start under the cluster's pod security. Tries the cluster's own file volumes first, then NFS. Sets the class of " +
			"claims with a policy or a webhook, whichever the cluster serves, and follows a profile to its namespace.",
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
		// The objects that change claims are deleted before the program that serves the webhook,
		// because without it API calls to the webhook fail.
		Undo: nil,
	}
}
