// Package liqo is the guide that peers two clusters with Liqo declaratively: a consumer uses
// the resources of a provider through objects that the admins of both sides create.
//
// Sources: liqotech/liqo (apis, pkg/liqo-controller-manager, internal/crdReplicator,
// pkg/webhooks, docs/advanced/peering/peering-via-cr.md) at v1.2.0 and after.
package liqo

import (
	_ "embed"

	"carrick/steps"
)

//go:embed README.md
var readme string

// page is the published guide that admins follow without carrick.
const page = "https://docs.liqo.io/en/stable/advanced/peering/peering-via-cr.html"

// Guide peers a consumer with a provider.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "liqo", Title: "Liqo declarative peering",
		Renamed: renamed,
		About: "Runs pods of a consumer cluster on a provider cluster. Connects their networks through a WireGuard tunnel " +
			"that is tested first, creates a credential whose key never leaves its side, requests resources, and offloads " +
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
		// Objects that Liqo copied to the provider are deleted while the credential still works
		// there. Namespaces are deleted last, because Liqo finds the other objects by their labels.
		Undo: []string{
			"offloading", "offloaded-namespace", "resource-slice", "control-plane", "tenant", "role-binding",
			"certificate-request", "service-account", "credential-key",
			"consumer-client", "provider-client", "consumer-server", "provider-server", "consumer-public-key",
			"provider-public-key",
			"consumer-keys", "provider-keys", "consumer-configuration", "provider-configuration", "consumer-namespace",
			"provider-namespace",
		},
		// Without its provider, a NamespaceOffloading keeps its finalizer until Liqo deletes the
		// NamespaceMap together with the last slice (liqotech/liqo 557c199cf,
		// pkg/liqo-controller-manager/offloading/namespaceoffloading-controller: lifecycle.go and
		// ensureRemoteConditionsConsistence in status.go; nothing there checks whether the provider
		// is declared lost).
		UndoAlone: []string{"resource-slice"},
		// This action set disableNetworkCheck on the VirtualNode, which is deleted with the slice.
		// Undoing it earlier would leave no value, which makes Liqo's webhook panic (liqotech/liqo
		// 557c199cf, pkg/webhooks/virtualnode/mutate.go, and v1.0.0).
		Retired: []string{"without-tunnel"},
	}
}

// These are the guide's names of the sides.
const (
	consumer = "consumer"
	provider = "provider"
)
