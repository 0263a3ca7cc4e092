// Package liqo is the guide that peers two clusters with Liqo declaratively: a consumer uses
// the resources of a provider through objects that the admins of both sides create.
//
// Sources: liqotech/liqo (apis, pkg/liqo-controller-manager, internal/crdReplicator, pkg/webhooks,
// docs/advanced/peering/peering-via-cr.md) at v1.2.0 and later.
package liqo

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// page is Liqo's published guide to declarative peering.
const page = "https://docs.liqo.io/en/stable/advanced/peering/peering-via-cr.html"

// Guide returns the guide that peers a consumer with a provider.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "liqo", Title: "Liqo declarative peering",
		Renamed: renamed,
		About: "Runs pods of a consumer cluster on a provider cluster. Connects the pod networks through a tested " +
			"WireGuard tunnel, creates a credential whose key never leaves the consumer, requests resources, and offloads " +
			"a namespace.",
		Page:   page,
		Readme: readme,
		Sides: map[steps.Side]steps.Role{
			steps.Local:  {Name: consumer, Kind: steps.Cluster},
			steps.Remote: {Name: provider, Kind: steps.Cluster},
		},
		Steps: []steps.Step{
			clusters(),
			tenantNamespaces(),
			network(),
			gatewayKeys(),
			tunnel(),
			credentials(),
			authentication(),
			resources(),
			offloading(),
		},
		// The credential for the provider is deleted after the slices and the offloadings, because Liqo deletes its
		// copies on the provider with this credential. The tenant namespaces are deleted last, because Liqo finds the
		// other objects by the namespaces' labels.
		Undo: []string{
			"offloading", "offloaded-namespace", "resource-slice", "control-plane", "tenant", "role-binding",
			"certificate-request", "service-account", "credential-key",
			"consumer-client", "provider-client", "consumer-server", "provider-server", "consumer-public-key",
			"provider-public-key",
			"consumer-keys", "provider-keys", "consumer-configuration", "provider-configuration", "consumer-namespace",
			"provider-namespace",
		},
		// If the provider is gone, a NamespaceOffloading keeps its finalizer until Liqo deletes the NamespaceMap together
		// with the last slice. For a NamespaceOffloading, Liqo does not check whether the provider is declared unreachable
		// (liqotech/liqo 557c199cf, pkg/liqo-controller-manager/offloading/namespaceoffloading-controller: lifecycle.go and
		// ensureRemoteConditionsConsistence in status.go).
		UndoAlone: []string{"resource-slice"},
		// In earlier carrick versions, this action set disableNetworkCheck on the VirtualNode. Liqo deletes the
		// VirtualNode with the slice. If carrick unset the field before that, Liqo's webhook would panic (liqotech/liqo
		// 557c199cf, pkg/webhooks/virtualnode/mutate.go, and v1.0.0).
		Retired: []string{"without-tunnel"},
	}
}

const (
	consumer = "consumer"
	provider = "provider"
)
