package interlink_test

import (
	"testing"

	"carrick/steps"
	"carrick/steps/interlink"
	"carrick/steps/stepstest"
)

// rowsB are the rows of the endpoint, its certificates and the plugin.
var rowsB = []stepstest.Row{
	{Number: 10, Asks: "the certificate is issued, with key and CA", Checks: []string{"cert-manager-there", "certificate-ready", "certificate-secret"}},
	{Number: 11, Asks: "what is served is signed by our CA, not made up by a controller", Checks: []string{"endpoint-certificate", "certificate-chain", "ingress-certificate"}},
	{Number: 12, Asks: "what is served is for the address", Checks: []string{"endpoint-names", "certificate-secret"}},
	{Number: 13, Asks: "certificate and CA outlast the longest job", Checks: []string{"certificate-lasts", "certificate-lives", "endpoint-dates", "endpoint-renewed"}},
	{Number: 15, Asks: "a connection from where jobs run", Checks: []string{"endpoint-name", "endpoint-port", "address-usable", "exposure-fits"}},
	{Number: 16, Asks: "the paths answer by that CA alone", Checks: []string{"endpoint-answers", "endpoint-anonymous", "endpoint-paths"}},
	{Number: 19, Asks: "one class, one controller", Checks: []string{"ingress-there", "ingress-class", "ingress-upstream"}},
	{Number: 20, Asks: "the port leads to the proxy", Checks: []string{"service-serves", "endpoint-namespace", "proxy-runs", "proxy-current", "ingress-port"}},
	{Number: 21, Asks: "the issuer and its CA beside the certificate", Checks: []string{"issuer-beside"}},
	{Number: 22, Asks: "the port is not open to the world", Checks: []string{"proxy-fenced", "ingress-inside"}},
	{Number: 23, Asks: "the plugin mounts what it is sent", Checks: []string{"plugin-config", "plugin-exports", "plugin-started"}},
	{Number: 24, Asks: "a plugin that knows projected volumes", Checks: []string{"plugin-version", "plugin-log"}},
	{Number: 25, Asks: "a data folder that is shared, and closed to others", Checks: []string{"plugin-data-shared", "plugin-data-closed"}},
	{Number: 26, Asks: "tokens are kept out of job scripts", Checks: []string{"plugin-tokens"}},
}

// besideRows are checks of what the rows say elsewhere: of the proxy's own
// configuration, and of what the published guide's commands leave behind.
var besideRows = []string{"proxy-configuration", "ingress-timeouts"}

// Every check of these steps belongs to a row, and every row's checks are there,
// with a state for either verdict.
func TestRowsOfTheEndpointAreLookedAt(t *testing.T) {
	g, wanted, named := interlink.Guide(), stepstest.Wanted(t, "testdata"), map[string]bool{}
	for _, name := range besideRows {
		named[name] = true
	}
	for _, r := range rowsB {
		for _, name := range r.Checks {
			named[name] = true
			if c, _ := g.Check(name); c == nil {
				t.Errorf("row %d: there is no check %s", r.Number, name)
			}
		}
	}
	for _, step := range []string{"exposure", "certificates", "proxy", "endpoint", "plugin"} {
		for _, c := range g.Step(step).Checks {
			if !named[c.Name] {
				t.Errorf("check %s belongs to no row", c.Name)
			}
			if w := wanted[c.Name]; len(w[steps.Pass]) == 0 || len(w[steps.Fail])+len(w[steps.Warn]) == 0 {
				t.Errorf("check %s passes in %d states and does not in %d", c.Name, len(w[steps.Pass]), len(w[steps.Fail])+len(w[steps.Warn]))
			}
		}
	}
}
