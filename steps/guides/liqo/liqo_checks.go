package liqo

import (
	"time"

	"carrick/steps"
)

// These are the upstream sources of the rules that these checks apply.
const (
	peerPage         = "liqotech/liqo: docs/usage/peer.md"
	requirementsPage = "liqotech/liqo: docs/installation/requirements.md"
	matrixPage       = "liqotech/liqo: docs/installation/compatibility.md"
	liqoInstallPage  = "https://docs.liqo.io/en/stable/installation/install.html"
)

func liqoChecks() []steps.Check {
	return append([]steps.Check{
		{
			Name: "kinds-served", Title: "Liqo 1.x is installed", On: steps.Both, Needs: []string{"signed-in"},
			Why:        "everything of a peering is an object of Liqo's kinds; releases before 1.0 had others of the same names",
			References: []string{page, "liqotech/liqo: deployments/liqo/charts/liqo-crds/crds"},
			Run:        kindsServed,
		},
		{
			Name: "cluster-id", Title: "the cluster has an id of its own that Liqo takes", On: steps.Both,
			Needs: []string{"kinds-served"},
			Why: "each side labels all that belongs to the peering with the other's id; with one id for both, each " +
				"takes the other for itself",
			References: []string{page, "liqotech/liqo: pkg/tenantNamespace"},
			Run:        soundID,
		},
		{
			Name: "may-peer", Title: "you may make what this guide makes", On: steps.Both, Needs: []string{"signed-in"},
			Why:         "a right that is missing half-way leaves half a peering",
			Permissions: true,
			Run:         mayPeer,
		},
		{
			Name: "liqo-runs", Title: "what Liqo runs is ready", On: steps.Both, Needs: []string{"kinds-served"},
			Timeout: 2 * time.Minute,
			Why: "every step waits for one of Liqo's controllers. liqoctl info says that Liqo is healthy where its " +
				"namespace and its id are there and nothing runs",
			References: []string{"liqotech/liqo: deployments/liqo/templates"},
			Run:        liqoRuns,
		},
		{
			Name: "liqo-version", Title: "both sides run one release of Liqo, and none that is known to break", On: steps.Both,
			Needs: []string{"liqo-runs"},
			Why: "upstream supports a peering of two releases only where they differ in the last number. 1.0.0 " +
				"translates remapped networks wrongly; before 1.2.0 the certificates of ResourceSlices are not renewed",
			References: []string{peerPage, "liqotech/liqo#3049", "liqotech/liqo#3145", "liqotech/liqo#3172"},
			Run:        liqoVersions,
		},
		{
			Name: "modules-on", Title: "the modules of Liqo that the peering uses are on", On: steps.Both,
			Needs: []string{"liqo-runs"},
			Why:   "what a module that is off would do never happens, and nothing says so",
			References: []string{
				"liqotech/liqo: deployments/liqo/values.yaml (networking.enabled, authentication.enabled, offloading.enabled)",
			},
			Run: modulesOn,
		},
		{
			Name: "api-address", Title: "Liqo can tell consumers where the API server is", On: steps.Remote,
			Needs: []string{"liqo-runs"},
			Why: "the virtual node signs in there. Where Liqo was given no address and finds no node of the control plane, it " +
				"denies every request for resources, " +
				"and only an event says why",
			References: []string{apiAddressSource},
			Run:        addressKnown,
		},
		{
			Name: "webhooks", Title: "Liqo's webhooks answer, with a certificate that lasts", On: steps.Both,
			Needs: []string{"liqo-runs"},
			Why: "the API server asks them whenever a Tenant, a ResourceSlice or a pod of an offloaded namespace is " +
				"written. Their certificate is made for a year, and up to 1.2.0 not renewed by itself: once it has expired, all " +
				"of that is refused",
			References: []string{"liqotech/liqo: pkg/webhooks/secretcontroller", "liqotech/liqo#3343"},
			Run:        webhooksAnswer,
		},
		{
			Name: "webhooks-trusted", Title: "the API server trusts the webhooks' certificate", On: steps.Both,
			Needs: []string{"webhooks"},
			Why: "the registrations carry the CA; where an upgrade or a GitOps tool put another one there, every such " +
				"write is refused",
			References: []string{"liqotech/liqo: pkg/webhooks/secretcontroller"},
			Run:        webhooksTrusted,
		},
	}, networkPreparation()...)
}

// networkPreparation returns the checks for clusters whose networks are to be joined.
func networkPreparation() []steps.Check {
	return []steps.Check{
		{
			Name: "networks-known", Title: "Liqo knows the networks of the cluster", On: steps.Both, When: joins,
			Needs: []string{"kinds-served"}, Timeout: time.Minute,
			Why: "the other side is told these address ranges; without the pods' or the external one its configuration " +
				"never gets ready",
			References: []string{"liqotech/liqo: docs/advanced/peering/inter-cluster-network.md"},
			Run:        networksKnown,
		},
		{
			Name: "remapped", Title: "the other side's networks cover no node and no API server here", On: steps.Both,
			When: joins, Needs: []string{"networks-known", "peer/networks-known"},
			Why: "where they overlap with networks that Liqo knows, it sees them under other ranges, which is no " +
				"fault. Addresses that Liqo doesn't know, such as the nodes', it would lead into the tunnel",
			References: []string{"liqotech/liqo: deployments/liqo/values.yaml (ipam.reservedSubnets)"},
			Run:        remapped,
		},
		{
			Name: "kernel", Title: "the nodes' kernels have what Liqo's network needs", On: steps.Both, When: joins,
			Needs: []string{"signed-in"},
			Why: "Liqo uses nftables as of Linux 5.10. Without the module wireguard the gateway doesn't start, unless " +
				"Liqo is installed with its userspace implementation",
			References: []string{requirementsPage, "liqotech/liqo#2535"},
			Run:        kernels,
		},
		{
			Name: "platform", Title: "Liqo's network is known to work on this kind of cluster", On: steps.Both, When: joins,
			Needs: []string{"signed-in"},
			Why: "on OpenShift the networking module is not finished; with Cilium in the place of kube-proxy, pods " +
				"that run on the other side can't be exposed by NodePort or LoadBalancer",
			References: []string{matrixPage},
			Run:        platform,
		},
	}
}
