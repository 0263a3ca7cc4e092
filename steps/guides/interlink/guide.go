// Package interlink is the guide that lets jobs on the other side of an InterLink
// virtual node talk to the Kubernetes API: an endpoint that they reach, a
// certificate that they trust, a virtual kubelet that tells them both, and a
// plugin that mounts what it is sent.
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

// page is what admins follow without carrick.
const page = "https://interlink-project.dev/docs/guides/enable-service-accounts"

// Guide makes the API of a cluster reachable from where its virtual node's jobs
// run.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "interlink", Title: "InterLink service accounts",
		About: "Lets jobs that run behind an InterLink virtual node use the Kubernetes API with their ServiceAccount, as " +
			"Argo needs. Makes an endpoint with a certificate of its own, " +
			"tells the virtual kubelet of it, sees to it that the plugin mounts the tokens, and asks through it what a " +
			"job would ask.",
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
		// What was tried goes first, then what jobs are told; the virtual kubelet starts
		// anew with that before the endpoint goes.
		Undo: []string{"test-job", "watch", "ask", "argo-role", "config", "restart"},
	}
}
