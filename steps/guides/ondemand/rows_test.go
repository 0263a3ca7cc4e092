package ondemand_test

import (
	"testing"

	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// rows lists the requirements that were found in upstream's code, and the checks that cover each.
var rows = []stepstest.Row{
	{Number: 1, Asks: "kubectl is one minor version away at most", Checks: []string{"kubectl-version"}},
	{
		Number: 2, Asks: "upstream's roles, rule by rule, and what is bound to them",
		Checks: []string{
			"namespace", "service-account", "hooks-role", "initializer-role", "users-role", "role-bound",
			"grantable-permissions",
			"account-permissions",
		},
	},
	{Number: 3, Asks: "root may do what the hooks do", Checks: []string{"root-permissions"}},
	{
		Number: 4, Asks: "root is the ServiceAccount, not an admin",
		Checks: []string{
			"root-kubeconfig", "root-kubeconfig-private", "root-kubeconfig-static", "root-identity", "hook-kubeconfig",
		},
	},
	{
		Number: 5, Asks: "the right to renew the token; root may renew its token",
		Checks: []string{"renew-role", "root-renews"},
	},
	{
		Number: 6, Asks: "the token has life left",
		Checks: []string{
			"root-token", "root-token-private", "root-token-lasts", "renewal-installed", "renewal-enabled",
			"no-published-renewal",
		},
	},
	{
		Number: 7, Asks: "what life the API server grants; it was granted for as long as asked",
		Checks: []string{"token-created", "token-lifetime", "token-accepted", "root-token-lifetime-granted"},
	},
	{
		Number: 8, Asks: "the cluster file is read, and upstream knows its keys",
		Checks: []string{"cluster-file", "cluster-file-keys", "cluster-file-values", "adapter"},
	},
	{Number: 9, Asks: "the auth type is one that upstream knows", Checks: []string{"auth-type", "gke-account"}},
	{Number: 10, Asks: "users may run kubectl", Checks: []string{"kubectl-installed"}},
	{Number: 11, Asks: "no kubeconfig under ~", Checks: []string{"config-file"}},
	{
		Number: 12, Asks: "the endpoint answers, and its certificate is trusted",
		Checks: []string{"endpoint", "endpoint-tls"},
	},
	{Number: 13, Asks: "the cluster's name is free", Checks: []string{"cluster-name-free"}},
	{Number: 14, Asks: "the prefixes agree", Checks: []string{"prefixes-match"}},
	{Number: 15, Asks: "hook.env by its right name", Checks: []string{"hook-env"}},
	{Number: 16, Asks: "hook.env is root's alone", Checks: []string{"hook-env-private"}},
	{Number: 17, Asks: "hook.env has no lines that end the hook", Checks: []string{"hook-env-lines"}},
	{
		Number: 18, Asks: "the issuer matches its discovery document",
		Checks: []string{"issuer", "hook-env-oidc", "one-issuer"},
	},
	{Number: 19, Asks: "tokens name the API server's client", Checks: []string{"server-issuer", "token-audience"}},
	{
		Number: 20, Asks: "users by their bare login name; plain login names",
		Checks: []string{"username-prefix", "user-bindings", "server-username"},
	},
	{
		Number: 21, Asks: "each user in their namespace alone",
		Checks: []string{"user-permissions", "user-denied", "user-isolation", "user-namespace", "user-service-account"},
	},
	{Number: 22, Asks: "users' names make namespaces", Checks: []string{"user-names"}},
	{
		Number: 23, Asks: "the fence holds web node and nodes; the network policy lets the portal in",
		Checks: []string{"cidr-covers-nodes", "user-network-policy", "allow-cidr"},
	},
	{Number: 24, Asks: "a network that enforces policies", Checks: []string{"network-policies-enforced"}},
	{Number: 25, Asks: "the portal comes to the nodes", Checks: []string{"node-port", "host-regex", "node-uris"}},
	{
		Number: 26, Asks: "the pre-PUN hook and what it is handed",
		Checks: []string{
			"pre-hook-set", "pre-hook-safe", "pre-hook-works", "portal-tokens", "portal-applied", "portal-restarted",
		},
	},
	{Number: 27, Asks: "sudo finds kubectl", Checks: []string{"kubectl-sudo"}},
	{Number: 28, Asks: "SELinux lets it", Checks: []string{"selinux"}},
	{Number: 29, Asks: "no hook failed", Checks: []string{"hook-log"}},
	{
		Number: 30, Asks: "no PodSecurityPolicies (the cluster's half); no pod security policies in the hook",
		Checks: []string{"no-pod-security-policies", "psp-disabled"},
	},
	{
		Number: 31, Asks: "pod security level and mounts",
		Checks: []string{"level-allows-mounts", "adapter-pod", "level-allows-pods", "id-maps", "ids-pinned"},
	},
	{
		Number: 32, Asks: "job-pod-reaper in its place, and narrow",
		Checks: []string{"reaper-installed", "reaper-values", "reaper-scope", "reaper-grantable-permissions"},
	},
	{
		Number: 33, Asks: "every user's namespace is bound to it",
		Checks: []string{"reaper-bound", "reaper-errors"},
	},
	{Number: 34, Asks: "apps set a walltime", Checks: []string{"apps-set-walltime"}},
	{Number: 35, Asks: "a Prometheus that knows", Checks: []string{"prometheus-knows-pods", "idle-volumes", "idle-ready"}},
	{Number: 36, Asks: "an anchored expression", Checks: []string{"idle-regexp", "idle-values"}},
	{
		Number: 37, Asks: "the registry's login",
		Checks: []string{"registry-file", "registry-private", "registry-login", "registry-hook"},
	},
	{Number: 38, Asks: "managed: the context is there", Checks: []string{"managed-context"}},
}

func TestRows(t *testing.T) {
	stepstest.Rows(t, ondemand.Guide(), "testdata", 38, rows)
	stepstest.EveryCheckHasARow(t, ondemand.Guide(), rows,
		"ondemand-version", "running-as-root", "portal-file", "ca-file", "reaper-flag", "kubectl-bin", "no-ssh")
}
