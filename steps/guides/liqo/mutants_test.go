package liqo_test

import (
	"testing"

	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

func TestVerifyMutants(t *testing.T) {
	stepstest.Mutants(t, liqo.Guide(), assets, "testdata", harmless)
}

// harmless lists changes that no check has to detect.
var harmless = []stepstest.Harmless{
	{
		Where: `local EndpointSlice default/kubernetes: endpoints\[0\]\.addresses\[0\] altered`,
		Why:   "another address of the API server, outside the networks of the other cluster, is as good",
	},
	{
		Where: `local NamespaceOffloading demo/offloading: spec\.(namespaceMapping|podOffloading)Strategy altered`,
		Why:   "no answer was given, and the default is what exists: the change is another answer",
	},
	{
		Where: `remote GatewayServer liqo-tenant-milan/milan: spec\.endpoint\.(nodePort|port) (altered|deleted)`,
		Why:   "no answer was given, and the default is what exists; the client is compared with status.endpoint",
	},
	{
		Where: `local Secret liqo-tenant-rome/kubeconfig-controlplane-rome: data one more`,
		Why:   "Liqo reads the key kubeconfig and no other",
	},
	{
		Where: `remote Namespace demo-milan deleted`,
		Why:   "Liqo watches the namespaces of its NamespaceMaps and recreates them",
	},
	{
		Where: `local demo: a .* added`,
		Why:   "the namespace belongs to its users, and carrick runs nothing in it",
	},
	{
		Where: `(local|remote) liqo-tenant-(rome|milan): a NetworkPolicy that allows everything added`,
		Why:   "nothing restricts traffic there, so this allows nothing new",
	},
	{
		Where: `(local|remote) liqo-tenant-(rome|milan): a NetworkPolicy that denies everything added`,
		Why:   "the gateway loses its tunnel, and the Connection, which is read, is no longer Connected",
	},
}
