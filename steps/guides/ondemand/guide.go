// Package ondemand is the guide that connects an Open OnDemand web node to a Kubernetes cluster. It gives root on the
// web node a token of a ServiceAccount, configures the hooks that create a namespace for each user at login, and writes
// the cluster file that the dashboard reads.
//
// Sources: OSC/ondemand (hooks, packaging, portal generator), OSC/ood_core (the Kubernetes adapter and its use of the
// cluster file), OSC/job-pod-reaper, OSC/k8-namespace-reaper, OSC/osc-helm-charts.
package ondemand

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// page is the URL of the published guide, which this guide replaces.
const page = "https://osc.github.io/ood-documentation/latest/installation/resource-manager/kubernetes.html"

// Guide returns the Open OnDemand guide.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "ondemand", Title: "Open OnDemand on Kubernetes",
		Renamed: renamed,
		About: "Runs the apps of Open OnDemand users as pods. Creates a ServiceAccount and roles on the cluster and gives " +
			"root on the web node a kubeconfig for this account only. Writes the hooks, the cluster file and the portal's " +
			"settings. Verifies with a trial user that users see only their own namespace.",
		Page:   page,
		Readme: readme,
		Sides: map[steps.Side]steps.Role{
			steps.Local:  {Name: "web node", Kind: steps.Host},
			steps.Remote: {Name: "cluster", Kind: steps.Cluster},
		},
		Steps: []steps.Step{
			sides(),
			bootstrap(),
			token(),
			kubectl(),
			walltime(),
			registry(),
			oidc(),
			hooks(),
			clusterFile(),
			policies(),
			trial(),
			idle(),
		},
	}
}
