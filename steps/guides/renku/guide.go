// Package renku is the guide that connects a remote cluster to a Renku deployment. Renku runs
// sessions on that cluster and reaches it with a kubeconfig of its own.
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

// page is the published guide that admins follow without carrick.
const page = "https://docs.renkulab.io/en/latest/docs/admins/operation/remote"

// Guide connects a remote cluster to Renku.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "renku", Title: "Renku remote cluster",
		Renamed: renamed,
		About: "Runs Renku sessions on a second cluster. Installs the session operator there, creates an identity, " +
			"verifies that its kubeconfig grants what Renku needs and nothing more, registers the cluster with Renku, and " +
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
		// A pool whose cluster is deleted would become a pool of the local cluster. The services
		// restart after the row is deleted and while the key that it named still exists.
		Undo: []string{"test-session", "members", "pool", "register", "restart", "secret"},
		API:  apiAddress,
	}
}
