package liqo

import (
	"time"

	"carrick/steps"
)

// Upstream sources that the checks of Liqo's installation cite.
const (
	peerPage         = "liqotech/liqo: docs/usage/peer.md"
	requirementsPage = "liqotech/liqo: docs/installation/requirements.md"
	matrixPage       = "liqotech/liqo: docs/installation/compatibility.md"
	liqoInstallPage  = "https://docs.liqo.io/en/stable/installation/install.html"
)

func liqoChecks() []steps.Check {
	return append([]steps.Check{
		{
			Name: "crds-installed", Title: "Liqo 1.x is installed", On: steps.Both, Needs: []string{"signed-in"},
			Why:        "A peering consists of Liqo objects; releases before 1.0 used incompatible kinds with the same names.",
			References: []string{page, "liqotech/liqo: deployments/liqo/charts/liqo-crds/crds"},
			Run:        kindsServed,
		},
		{
			Name: "cluster-id", Title: "The cluster id is valid and unique", On: steps.Both,
			Needs: []string{"crds-installed"},
			Why: "Each side labels the peering's objects with the other side's id; if both ids are equal, Liqo cannot " +
				"distinguish the clusters.",
			References: []string{page, "liqotech/liqo: pkg/tenantNamespace"},
			Run:        soundID,
		},
		{
			Name: "admin-permissions", Title: "You have the permissions this guide needs", On: steps.Both,
			Needs:       []string{"signed-in"},
			Why:         "A permission that is missing halfway leaves an incomplete peering.",
			Permissions: true,
			Run:         mayPeer,
		},
		{
			Name: "liqo-ready", Title: "Liqo's workloads are ready", On: steps.Both, Needs: []string{"crds-installed"},
			Timeout: 2 * time.Minute,
			Why: "Every step waits for one of Liqo's controllers, and liqoctl info reports a healthy Liqo even if no " +
				"controller runs.",
			References: []string{"liqotech/liqo: deployments/liqo/templates"},
			Run:        liqoRuns,
		},
		{
			Name: "liqo-version", Title: "The Liqo releases are compatible and have no known bugs", On: steps.Both,
			Needs: []string{"liqo-ready"},
			Why: "Upstream supports only peerings within one minor release; 1.0.0 remaps networks wrongly, and before " +
				"1.2.0 ResourceSlice certificates are not renewed.",
			References: []string{peerPage, "liqotech/liqo#3049", "liqotech/liqo#3145", "liqotech/liqo#3172"},
			Run:        liqoVersions,
		},
		{
			Name: "modules-enabled", Title: "Liqo's required modules are enabled", On: steps.Both,
			Needs: []string{"liqo-ready"},
			Why:   "Liqo skips a disabled module's part of the peering and reports no error.",
			References: []string{
				"liqotech/liqo: deployments/liqo/values.yaml (networking.enabled, authentication.enabled, offloading.enabled)",
			},
			Run: modulesOn,
		},
		{
			Name: "api-address", Title: "Liqo can determine the API server's address", On: steps.Remote,
			Needs: []string{"liqo-ready"},
			Why: "Virtual nodes connect to this address; if Liqo cannot determine it, Liqo denies every ResourceSlice " +
				"and gives the reason only in an event.",
			References: []string{apiAddressSource},
			Run:        addressKnown,
		},
		{
			Name: "webhooks", Title: "Liqo's webhooks answer, with a valid certificate", On: steps.Both,
			Needs: []string{"liqo-ready"},
			Why: "Once the webhooks' one-year certificate expires, all writes of Tenants, ResourceSlices and offloaded " +
				"pods fail; Liqo up to 1.2.0 does not renew it.",
			References: []string{"liqotech/liqo: pkg/webhooks/secretcontroller", "liqotech/liqo#3343"},
			Run:        webhooksAnswer,
		},
		{
			Name: "webhooks-trusted", Title: "The API server trusts the webhooks' certificate", On: steps.Both,
			Needs: []string{"webhooks"},
			Why: "If an upgrade or a GitOps tool changes the CA in the webhook registrations, the API server rejects " +
				"every write of Tenants and ResourceSlices.",
			References: []string{"liqotech/liqo: pkg/webhooks/secretcontroller"},
			Run:        webhooksTrusted,
		},
	}, networkPreparation()...)
}

// networkPreparation returns the checks that run before the clusters' networks are joined.
func networkPreparation() []steps.Check {
	return []steps.Check{
		{
			Name: "address-ranges", Title: "Liqo has the cluster's address ranges", On: steps.Both, When: joins,
			Needs: []string{"crds-installed"}, Timeout: time.Minute,
			Why: "The other side uses these ranges; without the pod and external CIDRs, its Configuration never " +
				"becomes ready.",
			References: []string{"liqotech/liqo: docs/advanced/peering/inter-cluster-network.md"},
			Run:        networksKnown,
		},
		{
			Name: "remapped", Title: "The peer's networks contain no local node or API server", On: steps.Both,
			When: joins, Needs: []string{"address-ranges", "peer/address-ranges"},
			Why: "Liqo remaps peer ranges that overlap with its own ranges, but routes traffic to nodes and API " +
				"servers in other peer ranges into the tunnel.",
			References: []string{"liqotech/liqo: deployments/liqo/values.yaml (ipam.reservedSubnets)"},
			Run:        remapped,
		},
		{
			Name: "kernel", Title: "The nodes' kernels support Liqo's network", On: steps.Both, When: joins,
			Needs: []string{"signed-in"},
			Why: "Liqo uses nftables of Linux 5.10 or later, and its gateway needs the wireguard module unless it uses " +
				"the userspace implementation.",
			References: []string{requirementsPage, "liqotech/liqo#2535"},
			Run:        kernels,
		},
		{
			Name: "platform", Title: "Liqo's network is known to work on this platform", On: steps.Both, When: joins,
			Needs: []string{"signed-in"},
			Why: "OpenShift support is unfinished; with Cilium instead of kube-proxy, a NodePort or a LoadBalancer " +
				"cannot expose pods on the other side.",
			References: []string{matrixPage},
			Run:        platform,
		},
	}
}
