// Package interlink is the guide that gives jobs behind an InterLink virtual node access to the Kubernetes API. It sets
// up an endpoint that the jobs can reach and whose certificate they trust, a virtual kubelet that passes the endpoint's
// address and CA to the jobs, and a plugin that mounts the jobs' tokens.
//
// Sources: interlink-hq/interLink (pkg/virtualkubelet), interlink-hq/interlink-helm-chart,
// interlink-hq/interlink-slurm-plugin (pkg/slurm), kubernetes/ingress-nginx, cert-manager/cert-manager.
package interlink

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// page is the URL of the published guide, which describes the same set-up without carrick.
const page = "https://interlink-project.dev/docs/guides/enable-service-accounts"

// Guide returns the guide that exposes a cluster's API to the jobs of its virtual node.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "interlink", Title: "InterLink service accounts",
		Renamed: renamed,
		About: "Allows jobs behind an InterLink virtual node to use the Kubernetes API with their ServiceAccount, as Argo " +
			"requires. Creates an endpoint with its own certificate, configures the virtual kubelet to use it, checks that " +
			"the plugin mounts the tokens, and sends a job's requests through the endpoint.",
		Page:   page,
		Readme: readme,
		Sides: map[steps.Side]steps.Role{
			steps.Local:  {Name: "cluster", Kind: steps.Cluster},
			steps.Remote: {Name: "edge", Kind: steps.Host, Optional: true},
		},
		Steps: []steps.Step{
			sides(),
			exposure(),
			certificates(),
			proxy(),
			endpoint(),
			config(),
			plugin(),
			workload(),
			test(),
		},
		// Undo deletes the test objects first. Then it restores the virtual kubelet's configuration and restarts the
		// virtual kubelet. Only then does it delete the endpoint.
		Undo: []string{"test-job", "watch", "ask", "argo-role", "config", "restart"},
	}
}
