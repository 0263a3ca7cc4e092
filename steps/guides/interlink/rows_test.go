package interlink_test

import (
	"testing"

	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// rows lists the requirements found in upstream's code, with the checks that verify them.
var rows = []stepstest.Row{
	{Number: 1, Asks: "Kubernetes is new enough", Checks: []string{"version"}},
	{Number: 2, Asks: "the virtual node, ready and labelled", Checks: []string{"virtual-node"}},
	{Number: 3, Asks: "a virtual kubelet that hands tokens over, pinned", Checks: []string{"kubelet-image"}},
	{
		Number: 4, Asks: "it may make tokens, and for whom",
		Checks: []string{"kubelet-creates-tokens", "kubelet-least-privilege"},
	},
	{
		Number: 5, Asks: "a configuration that can be read: the chart's bug",
		Checks: []string{"config-parses", "chart-release", "chart-values"},
	},
	{Number: 6, Asks: "address and port, of the endpoint", Checks: []string{"config-address"}},
	{Number: 7, Asks: "started since the configuration changed", Checks: []string{"config-loaded"}},
	{Number: 8, Asks: "projected volumes are handed over", Checks: []string{"projected-volumes"}},
	{Number: 9, Asks: "no tokens in the log", Checks: []string{"no-tokens-in-log"}},
	{
		Number: 10, Asks: "the certificate is issued, with key and CA",
		Checks: []string{"cert-manager-ready", "certificate-ready", "certificate-secret"},
	},
	{
		Number: 11, Asks: "what is served is signed by our CA, not made up by a controller",
		Checks: []string{"endpoint-certificate", "certificate-chain", "ingress-certificate"},
	},
	{Number: 12, Asks: "what is served is for the address", Checks: []string{"endpoint-names", "certificate-secret"}},
	{
		Number: 13, Asks: "certificate and CA outlast the longest job",
		Checks: []string{"certificate-lifetime", "certificate-max-lifetime", "endpoint-dates", "endpoint-renewed"},
	},
	{Number: 14, Asks: "the CA that jobs get, and what it proves", Checks: []string{"config-ca"}},
	{
		Number: 15, Asks: "a connection from where jobs run",
		Checks: []string{"endpoint-name", "endpoint-port", "address-usable", "exposure-fits"},
	},
	{
		Number: 16, Asks: "the paths answer by that CA alone",
		Checks: []string{"endpoint-answers", "endpoint-anonymous", "endpoint-paths"},
	},
	{
		Number: 17, Asks: "a token of the jobs' account is taken through the endpoint",
		Checks: []string{"requests-pass", "permissions-kept"},
	},
	{Number: 18, Asks: "a watch longer than a proxy's patience", Checks: []string{"watch-held"}},
	{
		Number: 19, Asks: "one class, one controller",
		Checks: []string{"ingress-exists", "ingress-class", "ingress-upstream"},
	},
	{
		Number: 20, Asks: "the port leads to the proxy",
		Checks: []string{"service-serves", "endpoint-namespace", "proxy-runs", "proxy-current", "ingress-port"},
	},
	{Number: 21, Asks: "the issuer and its CA beside the certificate", Checks: []string{"issuer-namespace"}},
	{Number: 22, Asks: "the port is not open to the world", Checks: []string{"proxy-sources", "ingress-inside"}},
	{
		Number: 23, Asks: "the plugin mounts what it is sent",
		Checks: []string{"plugin-config", "plugin-exports", "plugin-started"},
	},
	{Number: 24, Asks: "a plugin that knows projected volumes", Checks: []string{"plugin-version", "plugin-log"}},
	{
		Number: 25, Asks: "a data folder that is shared, and closed to others",
		Checks: []string{"plugin-data-shared", "plugin-data-closed"},
	},
	{Number: 26, Asks: "tokens are kept out of job scripts", Checks: []string{"plugin-tokens"}},
	{Number: 27, Asks: "the life that tokens are granted", Checks: []string{"token-lifetime"}},
	{
		Number: 28, Asks: "the jobs' account: there, mounted, modest",
		Checks: []string{"account-exists", "account-permissions", "account-argo"},
	},
	{Number: 29, Asks: "no pod asks for Linux", Checks: []string{"no-linux-selector"}},
	{Number: 30, Asks: "the test Job, and who it is", Checks: []string{"job-complete", "job-identity", "job-rules"}},
	{Number: 31, Asks: "its image is to be had", Checks: []string{"test-image", "job-complete"}},
	{Number: 32, Asks: "a token dies with its pod", Checks: []string{"pods-not-forced"}},
	{Number: 33, Asks: "an admin approves the node's serving certificate", Checks: []string{"serving-certificate"}},
}

func TestRows(t *testing.T) {
	stepstest.Rows(t, interlink.Guide(), "testdata", 33, rows)
	stepstest.EveryCheckHasARow(t, interlink.Guide(), rows, "edge-files", "proxy-configuration", "ingress-timeouts")
}
