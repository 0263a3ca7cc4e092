// Package liqo is the guide that peers two clusters with Liqo, declaratively: a
// consumer that uses the resources of a provider, by objects that admins of
// both make.
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

// page is what admins follow without carrick.
const page = "https://docs.liqo.io/en/stable/advanced/peering/peering-via-cr.html"

// Guide peers a consumer with a provider.
func Guide() *steps.Guide {
	return &steps.Guide{
		Name: "liqo", Title: "Liqo declarative peering",
		About: "Lets a consumer cluster run pods on a provider cluster. Joins their networks through a WireGuard tunnel " +
			"that is tried before it is built, " +
			"makes a credential whose key never crosses sides, asks for resources, and extends a namespace.",
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
		// What Liqo copied to the provider goes while the credential still works there;
		// namespaces go last, for their labels are what Liqo finds the rest by.
		Undo: []string{
			"offloading", "offloaded-namespace", "resource-slice", "control-plane", "tenant", "role-binding",
			"certificate-request", "service-account", "credential-key",
			"consumer-client", "provider-client", "consumer-server", "provider-server", "consumer-public-key",
			"provider-public-key",
			"consumer-keys", "provider-keys", "consumer-configuration", "provider-configuration", "consumer-namespace",
			"provider-namespace",
		},
		// Without its provider a NamespaceOffloading is held until the map of namespaces is gone, which goes with the last
		// slice (liqotech/liqo 557c199cf, pkg/liqo-controller-manager/offloading/namespaceoffloading-controller: lifecycle.go
		// and ensureRemoteConditionsConsistence in status.go; nothing there looks whether the provider is given up).
		UndoAlone: []string{"resource-slice"},
		// It set disableNetworkCheck on the VirtualNode, which goes with the slice. Taken back before, it would leave no
		// value, and Liqo's webhook panics at that (liqotech/liqo 557c199cf, pkg/webhooks/virtualnode/mutate.go, and v1.0.0).
		Retired: []string{"without-tunnel"},
	}
}

// The guide's names of the sides.
const (
	consumer = "consumer"
	provider = "provider"
)
