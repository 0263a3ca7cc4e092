package liqo_test

import (
	"testing"

	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// rows lists the requirements of a peering and the checks that verify them.
var rows = []stepstest.Row{
	{Number: 1, Asks: "two clusters that answer", Checks: []string{"reachable", "signed-in", "two-clusters"}},
	{Number: 2, Asks: "the admin may make all that is made", Checks: []string{"admin-permissions"}},
	{Number: 3, Asks: "Liqo's kinds in their versions", Checks: []string{"crds-installed"}},
	{Number: 4, Asks: "Liqo's pods are ready", Checks: []string{"liqo-ready"}},
	{Number: 5, Asks: "versions that understand each other", Checks: []string{"liqo-version"}},
	{Number: 6, Asks: "two cluster ids that Liqo takes", Checks: []string{"cluster-id"}},
	{Number: 7, Asks: "the modules are on", Checks: []string{"modules-enabled"}},
	{Number: 8, Asks: "the cluster's own networks have ranges", Checks: []string{"address-ranges"}},
	{Number: 9, Asks: "overlaps are told, remapped or not", Checks: []string{"remapped"}},
	{Number: 10, Asks: "the webhooks answer, with a certificate that lasts", Checks: []string{"webhooks"}},
	{Number: 11, Asks: "clocks agree", Checks: []string{"clock"}},
	{Number: 12, Asks: "kernels with WireGuard", Checks: []string{"kernel"}},
	{Number: 13, Asks: "one tenant namespace a peer, active", Checks: []string{"tenant-namespace"}},
	{Number: 14, Asks: "the two tenant namespaces belong together", Checks: []string{"tenant-pair"}},
	{Number: 15, Asks: "gateways may be privileged", Checks: []string{"pod-security"}},
	{Number: 16, Asks: "the gateways' templates", Checks: []string{"gateway-template"}},
	{Number: 17, Asks: "the peer's ranges, not one's own or old ones", Checks: []string{"configuration"}},
	{Number: 18, Asks: "one Configuration a peer, labelled", Checks: []string{"configuration"}},
	{Number: 19, Asks: "the Configuration is ready", Checks: []string{"configuration-ready"}},
	{Number: 20, Asks: "a key pair of 32 bytes, labelled, once", Checks: []string{"keys"}},
	{Number: 21, Asks: "the peer's public key", Checks: []string{"peer-key"}},
	{Number: 22, Asks: "two key pairs", Checks: []string{"keys-differ"}},
	{Number: 23, Asks: "one listens, the other connects", Checks: []string{"gateways"}},
	{Number: 24, Asks: "one MTU that fits", Checks: []string{"mtu"}},
	{Number: 25, Asks: "the port is free, or ours", Checks: []string{"node-port"}},
	{Number: 26, Asks: "the gateway that listens has an address", Checks: []string{"server-endpoint"}},
	{Number: 27, Asks: "the other connects to it", Checks: []string{"client-endpoint"}},
	{Number: 28, Asks: "an address that means the same over there", Checks: []string{"client-address"}},
	{Number: 29, Asks: "UDP gets through", Checks: []string{"handshake"}},
	{Number: 30, Asks: "the gateways' pods run", Checks: []string{"gateway-up"}},
	{Number: 31, Asks: "both sides say Connected, lately", Checks: []string{"connection"}},
	{Number: 32, Asks: "the role for consumers", Checks: []string{"controlplane-role"}},
	{Number: 33, Asks: "the provider signs, and signed", Checks: []string{"certificate-issued", "signs-certificates"}},
	{Number: 34, Asks: "the certificate is what it must be", Checks: []string{"certificate-valid", "request-valid"}},
	{Number: 35, Asks: "the certificate lasts", Checks: []string{"certificate-lifetime"}},
	{Number: 36, Asks: "the binding is for its name", Checks: []string{"role-binding"}},
	{Number: 37, Asks: "the Tenant is taken", Checks: []string{"tenant", "tenant-name"}},
	{Number: 38, Asks: "a kubeconfig that stands alone", Checks: []string{"kubeconfig-self-contained"}},
	{Number: 39, Asks: "its server, with its CA", Checks: []string{"kubeconfig-server"}},
	{Number: 40, Asks: "its rights, and no others", Checks: []string{"credential-rights", "least-privilege"}},
	{Number: 41, Asks: "the provider's namespace in the annotation", Checks: []string{"control-plane"}},
	{Number: 42, Asks: "one such Secret", Checks: []string{"control-plane"}},
	{Number: 43, Asks: "Liqo has taken the Secret", Checks: []string{"peer-api-reachable", "slice-copied"}},
	{Number: 44, Asks: "Liqo reaches the other's API server", Checks: []string{"peer-api-reachable"}},
	{Number: 45, Asks: "the slice's three labels", Checks: []string{"slice"}},
	{Number: 46, Asks: "the slice's name", Checks: []string{"slice"}},
	{Number: 47, Asks: "the slice reached the provider", Checks: []string{"slice-copied"}},
	{Number: 48, Asks: "the slice is accepted, twice", Checks: []string{"slice-accepted", "api-address"}},
	{Number: 49, Asks: "there is room for it", Checks: []string{"provider-capacity"}},
	{Number: 50, Asks: "the virtual node, and its node", Checks: []string{"virtual-node", "foreign-cluster"}},
	{
		Number: 51, Asks: "the namespace is offloaded",
		Checks: []string{"offloading-namespace", "remote-namespace", "offloading-ready"},
	},
	{Number: 52, Asks: "no pod from before waits", Checks: []string{"pods-before-offloading"}},
	{Number: 53, Asks: "the quota has room", Checks: []string{"quota-free"}},
	{Number: 54, Asks: "nothing is left of an older peering", Checks: []string{"leftovers"}},
}

func TestEveryRowIsChecked(t *testing.T) {
	stepstest.Rows(t, liqo.Guide(), "testdata", 54, rows)
}
