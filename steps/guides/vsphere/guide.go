// Package vsphere is the guide that gives Kubeflow and Kale volumes that many pods
// write to on a Tanzu guest cluster, and lets their pods start under its pod
// security: a class for such volumes, the rule by which claims get it, and the
// level that namespaces of profiles have.
//
// Sources: SoeldnerConsult/vSphere-extensions (additional, src/main/java/de/keeyzar), kubeflow/dashboard
// (components/profile-controller), kubeflow/manifests (applications/profiles),
// kubernetes-sigs/nfs-subdir-external-provisioner (charts), cert-manager/cert-manager.
package vsphere

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// Guide makes a guest cluster fit for Kubeflow's volumes and pods.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "vsphere", Title: "Kubeflow and Kale on vSphere",
		About: "Gives Kubeflow and Kale on a Tanzu guest cluster volumes that many pods write to, and pods that its pod " +
			"security lets start. Tries the cluster's own file volumes first, " +
			"then NFS; changes the class of claims by a policy or a webhook, whichever the cluster serves; and follows a " +
			"profile to its namespace.",
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
		// What changes claims goes before what serves it: a webhook without a server
		// would answer nobody.
		Undo: nil,
	}
}
