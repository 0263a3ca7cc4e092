// Package renku is the guide that connects a remote cluster to a Renku
// deployment: a place where sessions run, which Renku reaches with a
// kubeconfig of its own.
//
// Sources: SwissDataScienceCenter/renku-data-services (how kubeconfigs are
// loaded and used), SwissDataScienceCenter/renku (the chart and its RBAC),
// SwissDataScienceCenter/amalthea (the session operator).
package renku

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// page is what admins follow without carrick.
const page = "https://docs.renkulab.io/en/latest/docs/admins/operation/remote"

// Guide connects a remote cluster to Renku.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "renku", Title: "Renku remote cluster",
		About: "Runs Renku sessions on a second cluster. Installs the session operator there, makes an identity and proves " +
			"that its kubeconfig grants what Renku needs and nothing more, registers the cluster with Renku, and makes a " +
			"resource pool.",
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
		// A pool of a cluster that goes would become the local cluster's. The services
		// restart when the row is gone, and while the key that it named still stands.
		Undo: []string{"test-session", "members", "pool", "register", "restart", "secret"},
		API:  apiAddress,
	}
}
