// Package renku is the guide that connects a remote cluster to a Renku deployment. Renku then runs
// sessions on that cluster. It uses a dedicated kubeconfig to reach the cluster.
//
// Sources: SwissDataScienceCenter/renku-data-services (how kubeconfigs are loaded and used),
// SwissDataScienceCenter/renku (the chart and its RBAC), SwissDataScienceCenter/amalthea (the
// session operator).
package renku

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// page is the published guide. It describes the same setup without carrick.
const page = "https://docs.renkulab.io/en/latest/docs/admins/operation/remote"

// Guide returns the guide that connects a remote cluster to Renku.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "renku", Title: "Renku remote cluster",
		Renamed: renamed,
		About: "Runs Renku sessions on a second cluster. Installs the session operator there, creates an identity, " +
			"verifies that its kubeconfig grants only the permissions that Renku needs, registers the cluster with Renku, and " +
			"creates a resource pool.",
		Page:   page,
		Readme: readme,
		Sides: map[steps.Side]steps.Role{
			steps.Local:  {Name: "local", Kind: steps.Cluster},
			steps.Remote: {Name: "remote", Kind: steps.Cluster},
		},
		Steps: []steps.Step{
			clusters(),
			prerequisites(),
			operator(),
			identity(),
			config(),
			secret(),
			register(),
			restart(),
			resourcePool(),
			login(),
			session(),
		},
		// Delete the pool before the cluster, because Renku moves the pools of a deleted cluster to the
		// local cluster. Restart the services after the cluster is deleted in Renku, but before its key
		// is removed from the Secret.
		Undo: []string{"test-session", "members", "pool", "register", "restart", "secret"},
		API:  apiAddress,
	}
}
