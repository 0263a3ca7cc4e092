package ondemand

import (
	"testing"

	"carrick/steps"
	"carrick/steps/stepstest"
)

// rowsC2 are the rows of the web node: its portal, its hooks and the cluster file.
var rowsC2 = []stepstest.Row{
	{Number: 8, Asks: "the cluster file is read, and upstream knows its keys", Checks: []string{"cluster-file", "cluster-file-keys", "cluster-file-values", "adapter"}},
	{Number: 9, Asks: "the auth type is one that upstream knows", Checks: []string{"auth-type", "gke-account"}},
	{Number: 11, Asks: "no kubeconfig under ~", Checks: []string{"config-file"}},
	{Number: 12, Asks: "the endpoint answers, and its certificate is trusted", Checks: []string{"endpoint", "endpoint-tls"}},
	{Number: 13, Asks: "the cluster's name is free", Checks: []string{"cluster-name-free"}},
	{Number: 14, Asks: "the prefixes agree", Checks: []string{"prefixes-agree"}},
	{Number: 15, Asks: "hook.env by its right name", Checks: []string{"hook-env"}},
	{Number: 16, Asks: "hook.env is root's alone", Checks: []string{"hook-env-private"}},
	{Number: 17, Asks: "hook.env has no lines that end the hook", Checks: []string{"hook-env-lines"}},
	{Number: 18, Asks: "the issuer says that it is one", Checks: []string{"issuer", "hook-env-oidc", "one-issuer"}},
	{Number: 19, Asks: "tokens name the API server's client", Checks: []string{"server-issuer", "token-audience"}},
	{Number: 20, Asks: "plain login names", Checks: []string{"server-username"}},
	{Number: 22, Asks: "users' names make namespaces", Checks: []string{"user-names"}},
	{Number: 23, Asks: "the network policy lets the portal in", Checks: []string{"allow-cidr"}},
	{Number: 25, Asks: "the portal comes to the nodes", Checks: []string{"node-port", "host-regex", "node-uris"}},
	{Number: 26, Asks: "the pre-PUN hook and what it is handed", Checks: []string{"pre-hook-set", "pre-hook-safe", "pre-hook-does", "portal-tokens", "portal-applied", "portal-runs"}},
	{Number: 28, Asks: "SELinux lets it", Checks: []string{"selinux"}},
	{Number: 29, Asks: "no hook failed", Checks: []string{"hook-log"}},
	{Number: 30, Asks: "no pod security policies in the hook", Checks: []string{"no-psp"}},
	{Number: 38, Asks: "managed: the context is there", Checks: []string{"managed-context"}},
}

// TestRowsOfTheWebNode proves that each row has a state in which its checks pass,
// and one in which they do not.
func TestRowsOfTheWebNode(t *testing.T) {
	g, wanted := Guide(), stepstest.Wanted(t, "testdata")
	for _, row := range rowsC2 {
		for _, name := range row.Checks {
			if c, _ := g.Check(name); c == nil {
				t.Errorf("row %d names check %q, which there is not", row.Number, name)
			}
			is := wanted[name]
			if len(is[steps.Pass]) == 0 || len(is[steps.Fail])+len(is[steps.Warn]) == 0 {
				t.Errorf("row %d: check %s passes in %d states, fails in %d and warns in %d", row.Number, name, len(is[steps.Pass]), len(is[steps.Fail]), len(is[steps.Warn]))
			}
		}
	}
}
