// Package interlink is the guide that gives jobs behind an InterLink virtual node access to the Kubernetes API. It sets
// up an endpoint that the jobs can reach, a certificate that they trust, a virtual kubelet that passes both on to them,
// and a plugin that mounts their tokens.
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

// page is the published guide that admins follow without carrick.
const page = "https://interlink-project.dev/docs/guides/enable-service-accounts"

// Guide exposes the API of a cluster to the jobs of its virtual node.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "interlink", Title: "InterLink service accounts",
		Renamed: renamed,
		About: "Lets jobs behind an InterLink virtual node use the Kubernetes API with their ServiceAccount, as Argo " +
			"requires. Creates an endpoint with its own certificate, configures the virtual kubelet to use it, checks that " +
			"the plugin mounts the tokens, and sends the requests of a job through it.",
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
		// Undo deletes the trials first, then the configuration of jobs. The virtual kubelet restarts
		// without that configuration before the endpoint is deleted.
		Undo: []string{"test-job", "watch", "ask", "argo-role", "config", "restart"},
	}
}
