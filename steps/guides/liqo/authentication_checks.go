package liqo

import (
	"time"

	"carrick/steps"
)

// Upstream sources that the authentication checks cite.
const (
	tenantSource  = "liqotech/liqo: pkg/liqo-controller-manager/authentication/tenant-controller"
	tenantWebhook = "liqotech/liqo: pkg/webhooks/tenant/validate.go"
	foreignSource = "liqotech/liqo: pkg/liqo-controller-manager/core/foreigncluster-controller"
)

func authenticationChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "tenant", Title: "The consumer is registered as a Tenant", On: steps.Remote, FixedBy: "tenant",
			Needs: []string{"tenant-namespace"}, Timeout: 30 * time.Second,
			Why:        "Without a Tenant that tolerates a missing handshake, the provider waits indefinitely and accepts no requests.",
			References: []string{page, tenantSource, tenantWebhook},
			Run:        tenantExists,
		},
		{
			Name: "tenant-name", Title: "The Tenant name cannot clash with another consumer's", On: steps.Remote,
			Needs:      []string{"tenant"},
			Why:        "Tenant names are unique on a provider, so Liqo rejects the published guide's my-tenant for a second consumer.",
			References: []string{page, tenantWebhook},
			Run:        tenantNamed,
		},
		{
			Name: "control-plane", Title: "Liqo finds exactly one control-plane kubeconfig Secret", On: steps.Local,
			FixedBy: "control-plane", Needs: []string{"tenant-namespace"},
			Why:        "Liqo finds the Secret by two labels and an annotation, only logs mistakes in them, and never retries.",
			References: []string{page, replicatorCode},
			Run:        controlPlaneHeld,
		},
		{
			Name: "peer-api-reachable", Title: "Liqo's pods reach the peer's API server", On: steps.Both,
			Needs: []string{"control-plane"}, Timeout: 30 * time.Second,
			Why:        "A firewall, a proxy or DNS can block the pods even if this machine can connect.",
			References: []string{foreignSource + "/apiserverchecker.go", "liqotech/liqo#1620"},
			Run:        apiServerSeen,
		},
	}
}
