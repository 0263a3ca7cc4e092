package renku_test

import (
	"testing"

	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// rows are what a remote cluster of Renku asks for.
var rows = []stepstest.Row{
	{
		Number: 1, Asks: "the admin may make identity and roles",
		Checks: []string{"reachable", "signed-in", "version", "admin-permissions"},
	},
	{Number: 2, Asks: "the namespace is active", Checks: []string{"namespace"}},
	{Number: 3, Asks: "pod security levels", Checks: []string{"pod-security", "pod-security-csi"}},
	{Number: 4, Asks: "no quota that wants CPU limits or is too small", Checks: []string{"other-quotas"}},
	{Number: 5, Asks: "account, role and binding", Checks: []string{"service-account", "role-binding", "role-rules"}},
	{
		Number: 6, Asks: "every right that Renku uses, asked with the kubeconfig",
		Checks: []string{
			"credential-rights", "credential-priorityclasses", "token-secrets-denied", "session-account-fixed",
			"data-connectors-denied", "accounts-least-privilege",
		},
	},
	{
		Number: 7, Asks: "priority classes may be listed, and the pools' deleted",
		Checks: []string{"priorityclasses-binding", "credential-priorityclasses", "credential-deletes-classes"},
	},
	{Number: 8, Asks: "a priority class a quota", Checks: []string{"priority-classes"}},
	{Number: 9, Asks: "no quota left by a failed try", Checks: []string{"quota-free"}},
	{Number: 10, Asks: "the token Secret is whole", Checks: []string{"token-secret"}},
	{Number: 11, Asks: "whose token, and that it has no end", Checks: []string{"token-encoding", "token-lifetime"}},
	{Number: 12, Asks: "token and CA are decoded once", Checks: []string{"token-encoding", "ca-certificate"}},
	{Number: 13, Asks: "a current context that is whole", Checks: []string{"kubeconfig-context"}},
	{Number: 14, Asks: "no file, plugin or password", Checks: []string{"kubeconfig-self-contained"}},
	{Number: 15, Asks: "an address that means the same in Renku's pods", Checks: []string{"server-address"}},
	{Number: 16, Asks: "TLS with that CA alone", Checks: []string{"server-tls"}},
	{Number: 17, Asks: "reached from a pod of the local cluster", Checks: []string{"reachable-from-pods"}},
	{Number: 18, Asks: "pods can be listed", Checks: []string{"lists-pods"}},
	{Number: 19, Asks: "all API services answer", Checks: []string{"apis-available"}},
	{Number: 20, Asks: "metrics for hibernation", Checks: []string{"metrics"}},
	{Number: 21, Asks: "the kind of sessions is served", Checks: []string{"session-crd"}},
	{Number: 22, Asks: "one version of the operator", Checks: []string{"operator-version"}},
	{Number: 23, Asks: "one definition of a session", Checks: []string{"session-crd-equal"}},
	{Number: 24, Asks: "whose release the definition is", Checks: []string{"session-crd-owner"}},
	{Number: 25, Asks: "an operator that watches the namespace", Checks: []string{"operator-ready"}},
	{Number: 26, Asks: "the class of data connectors", Checks: []string{"rclone-storage-class"}},
	{Number: 27, Asks: "one version of csi-rclone", Checks: []string{"driver-version"}},
	{Number: 28, Asks: "the driver on every node of sessions", Checks: []string{"csi-on-nodes"}},
	{Number: 29, Asks: "the kubelet's folder", Checks: []string{"csi-kubelet-dir"}},
	{Number: 30, Asks: "a node that takes sessions", Checks: []string{"nodes"}},
	{Number: 31, Asks: "the label of nodes for users", Checks: []string{"node-purpose"}},
	{Number: 32, Asks: "the biggest class fits on a node", Checks: []string{"capacity"}},
	{Number: 33, Asks: "a StorageClass", Checks: []string{"storage-class"}},
	{Number: 34, Asks: "an IngressClass", Checks: []string{"ingress-class"}},
	{Number: 35, Asks: "the TLS Secret fits", Checks: []string{"tls-secret"}},
	{Number: 36, Asks: "browsers trust the sessions' host", Checks: []string{"session-tls"}},
	{Number: 37, Asks: "DNS leads to the ingress", Checks: []string{"session-host-resolves", "session-host-is-ingress"}},
	{Number: 38, Asks: "a host name of its own", Checks: []string{"session-host-name"}},
	{Number: 39, Asks: "the path of sessions", Checks: []string{"session-path"}},
	{Number: 40, Asks: "protocol and port", Checks: []string{"session-protocol", "session-port"}},
	{Number: 41, Asks: "names of the cluster and its kubeconfig", Checks: []string{"cluster-name-free"}},
	{Number: 42, Asks: "annotations are text", Checks: []string{"annotations-valid"}},
	{Number: 43, Asks: "snippets are taken", Checks: []string{"snippets-allowed"}},
	{Number: 44, Asks: "CORS headers by name", Checks: []string{"cors-headers"}},
	{Number: 45, Asks: "the portal's origin", Checks: []string{"cors-origin"}},
	{
		Number: 46, Asks: "cookies for frames, with their protection",
		Checks: []string{"same-site", "framing-restricted", "pool-rules"},
	},
	{Number: 47, Asks: "whether frames need such cookies", Checks: []string{"frame-cookies"}},
	{Number: 48, Asks: "uploads and long headers", Checks: []string{"uploads"}},
	{Number: 49, Asks: "sessions are fenced in and have DNS", Checks: []string{"egress-policy", "dns-pods"}},
	{Number: 50, Asks: "sessions reach Renku", Checks: []string{"renku-address"}},
	{Number: 51, Asks: "nobody past the login", Checks: []string{"ingress-policy"}},
	{Number: 52, Asks: "no cloud metadata", Checks: []string{"metadata-blocked"}},
	{Number: 53, Asks: "the account of sessions", Checks: []string{"session-service-account"}},
	{Number: 54, Asks: "CA Secrets that sessions mount", Checks: []string{"custom-cas-exist"}},
	{
		Number: 55, Asks: "the kubeconfigs Secret",
		Checks: []string{"kubeconfigs-value", "kubeconfig-stored", "stored-kubeconfig", "stored-server-tls"},
	},
	{
		Number: 56, Asks: "four services mount it, and started after it",
		Checks: []string{"kubeconfigs-mounted", "services-restarted"},
	},
	{Number: 57, Asks: "their logs say that it was loaded", Checks: []string{"kubeconfig-loaded", "kubeconfig-first-use"}},
	{Number: 58, Asks: "an admin of Renku", Checks: []string{"api-signed-in", "api-admin"}},
	{Number: 59, Asks: "a Renku that knows the fields", Checks: []string{"api-answers", "api-knows-fields"}},
	{Number: 60, Asks: "the cluster is stored as given", Checks: []string{"cluster-registered", "cluster-as-planned"}},
	{Number: 61, Asks: "one pool, here, with its quota", Checks: []string{"pool-exists", "pool-as-planned"}},
	{Number: 62, Asks: "classes fit into the quota", Checks: []string{"pool-sizes", "pool-rules"}},
	{Number: 63, Asks: "the quota's id", Checks: []string{"pool-rules"}},
	{Number: 64, Asks: "somebody may use the pool", Checks: []string{"pool-members"}},
	{Number: 65, Asks: "logins may return to sessions", Checks: []string{"redirect-uris", "web-origins"}},
	{Number: 66, Asks: "the login service answers", Checks: []string{"issuer"}},
	{Number: 67, Asks: "images can be pulled", Checks: []string{"image-pulls"}},
	{Number: 68, Asks: "users' own secrets", Checks: []string{"user-secrets"}},
	{
		Number: 69, Asks: "a session from end to end",
		Checks: []string{"session-reconciled", "session-pod", "session-volume", "session-ingress", "session-url"},
	},
}

func TestEveryRowIsChecked(t *testing.T) {
	stepstest.Rows(t, renku.Guide(), "testdata", 69, rows)
}
