package liqo

import (
	"time"

	"carrick/steps"
)

// These are the upstream sources of the rules that these checks apply.
const (
	tenantSource  = "liqotech/liqo: pkg/liqo-controller-manager/authentication/tenant-controller"
	tenantWebhook = "liqotech/liqo: pkg/webhooks/tenant/validate.go"
	foreignSource = "liqotech/liqo: pkg/liqo-controller-manager/core/foreigncluster-controller"
)

func authenticationChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "tenant", Title: "the provider has the consumer as its tenant", On: steps.Remote, FixedBy: "tenant",
			Needs: []string{"tenant-namespace"}, Timeout: 30 * time.Second,
			Why: "without a Tenant that tolerates that there was no handshake, the provider waits for one for ever and " +
				"accepts nothing",
			References: []string{page, tenantSource, tenantWebhook},
			Run:        tenantExists,
		},
		{
			Name: "tenant-name", Title: "the Tenant's name leaves room for other consumers", On: steps.Remote,
			Needs: []string{"tenant"},
			Why: "names of Tenants are unique on the whole provider: the published guide's my-tenant is refused to the " +
				"second consumer",
			References: []string{page, tenantWebhook},
			Run:        tenantNamed,
		},
		{
			Name: "control-plane", Title: "the consumer holds that kubeconfig where Liqo looks for it, once", On: steps.Local,
			FixedBy: "control-plane", Needs: []string{"tenant-namespace"},
			Why: "Liqo finds it by two labels and writes to the namespace in its annotation. What is wrong with these " +
				"it says in a log line and never tries again",
			References: []string{page, replicatorCode},
			Run:        controlPlaneHeld,
		},
		{
			Name: "api-server-seen", Title: "Liqo reaches the other side's API server from inside", On: steps.Both,
			Needs: []string{"control-plane"}, Timeout: 30 * time.Second,
			Why:        "what this machine reaches a pod may not: a firewall, a proxy, a name that pods don't know",
			References: []string{foreignSource + "/apiserverchecker.go", "liqotech/liqo#1620"},
			Run:        apiServerSeen,
		},
	}
}
