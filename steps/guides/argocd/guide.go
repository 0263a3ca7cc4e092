// Package argocd is the guide that registers a cluster with Argo CD declaratively. It creates an identity on the
// destination, and the Secret that Argo CD uses to deploy to the destination. Upstream's source is argoproj/argo-cd,
// master at 37ee0097 (version 3.6.0).
package argocd

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// page is upstream's documentation of the cluster Secret.
const page = "https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/#clusters"

// Guide returns the guide that registers a cluster with Argo CD.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "argocd", Title: "Argo CD destination cluster",
		Renamed: renamed,
		About: "Registers a second cluster with Argo CD through a Secret, without argocd cluster add. Creates an identity " +
			"on that cluster, for the whole cluster or for some namespaces, tests its permissions, and checks whether Argo " +
			"CD connects.",
		Page: page, Readme: readme,
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "argocd", Kind: steps.Cluster}, steps.Remote: {Name: "destination", Kind: steps.Cluster},
		},
		Steps: []steps.Step{clusters(), identity(), registration(), trial()},
	}
}
