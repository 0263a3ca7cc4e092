package ondemand

import "carrick/steps/stepstest"

// rowsC1 are the rows of root's token, kubectl and registry.
var rowsC1 = []stepstest.Row{
	{Number: 1, Asks: "kubectl is one minor version away at most", Checks: []string{"kubectl-version"}},
	{Number: 3, Asks: "root may do what the hooks do", Checks: []string{"root-rights"}},
	{Number: 4, Asks: "root is the ServiceAccount, not an admin", Checks: []string{"root-kubeconfig", "root-kubeconfig-private", "root-kubeconfig-static", "root-identity", "hook-kubeconfig"}},
	{Number: 5, Asks: "root may renew its token", Checks: []string{"root-renews"}},
	{Number: 6, Asks: "the token has life left", Checks: []string{"root-token", "root-token-private", "root-token-lasts", "renewal-there", "renewal-on", "renewal-published"}},
	{Number: 7, Asks: "it was granted for as long as asked", Checks: []string{"root-token-granted"}},
	{Number: 10, Asks: "users may run kubectl", Checks: []string{"kubectl-there"}},
	{Number: 27, Asks: "sudo finds kubectl", Checks: []string{"kubectl-sudo"}},
	{Number: 37, Asks: "the registry's login", Checks: []string{"registry-file", "registry-private", "registry-login", "registry-hook"}},
}
