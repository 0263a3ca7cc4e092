package renku_test

import (
	"slices"
	"testing"

	"carrick/steps"
	"carrick/steps/renku"
	"carrick/steps/stepstest"
)

// row is one thing that a remote cluster of Renku asks for, by its number in
// the list of what upstream was found to need, and the checks that look at it.
type row struct {
	number int
	asks   string
	checks []string
}

var rows = []row{
	{1, "the admin may make identity and roles", []string{"reachable", "signed-in", "version", "may-prepare"}},
	{2, "the namespace is active", []string{"namespace"}},
	{3, "pod security levels", []string{"pod-security", "pod-security-csi"}},
	{4, "no quota that wants CPU limits", []string{"other-quotas"}},
	{5, "account, role and binding", []string{"service-account", "role-binding", "role-rules"}},
	{6, "every right that Renku uses, asked with the kubeconfig", []string{"credential-rights", "credential-priorityclasses"}},
	{7, "priority classes may be listed", []string{"priorityclasses-binding", "credential-priorityclasses"}},
	{8, "a priority class a quota", []string{"priority-classes"}},
	{9, "no quota left by a failed try", []string{"quota-free"}},
	{10, "the token Secret is whole", []string{"token-secret"}},
	{11, "whose token, and that it has no end", []string{"token-encoding", "token-lasts"}},
	{12, "token and CA are decoded once", []string{"token-encoding", "ca-certificate"}},
	{13, "a current context that is whole", []string{"kubeconfig-context"}},
	{14, "no file, plugin or password", []string{"kubeconfig-self-contained"}},
	{15, "an address that means the same in Renku's pods", []string{"server-address"}},
	{16, "TLS with that CA alone", []string{"server-tls"}},
	{17, "reached from a pod of the local cluster", []string{"reached-from-inside"}},
	{18, "pods can be listed", []string{"lists-pods"}},
	{19, "all API services answer", []string{"apis-available"}},
	{20, "metrics for hibernation", []string{"metrics"}},
	{21, "the kind of sessions is served", []string{"session-crd"}},
	{22, "one version of the operator", []string{"operator-version"}},
	{23, "one definition of a session", []string{"session-crd-equal"}},
	{24, "whose release the definition is", []string{"session-crd-owner"}},
	{25, "an operator that watches the namespace", []string{"operator-ready"}},
	{26, "the class of data connectors", []string{"rclone-storage-class"}},
	{27, "one version of csi-rclone", []string{"driver-version"}},
	{28, "the driver on every node of sessions", []string{"csi-on-nodes"}},
	{29, "the kubelet's folder", []string{"csi-kubelet-dir"}},
	{30, "a node that takes sessions", []string{"nodes"}},
	{31, "the label of nodes for users", []string{"node-purpose"}},
	{32, "the biggest class fits on a node", []string{"capacity"}},
	{33, "a StorageClass", []string{"storage-class"}},
	{34, "an IngressClass", []string{"ingress-class"}},
	{35, "the TLS Secret fits", []string{"tls-secret"}},
	{36, "browsers trust the sessions' host", []string{"session-tls"}},
	{37, "DNS leads to the ingress", []string{"session-host-resolves", "session-host-is-ingress"}},
	{38, "a host name of its own", []string{"session-host-name"}},
	{39, "the path of sessions", []string{"session-path"}},
	{40, "protocol and port", []string{"session-protocol", "session-port"}},
	{41, "names of the cluster and its kubeconfig", []string{"cluster-name-free"}},
	{42, "annotations are text", []string{"annotations-text"}},
	{43, "snippets are taken", []string{"snippets-allowed"}},
	{44, "CORS headers by name", []string{"cors-headers"}},
	{45, "the portal's origin", []string{"cors-origin"}},
	{46, "cookies for frames, with their protection", []string{"same-site", "framing-fenced", "pool-rules"}},
	{47, "whether frames need such cookies", []string{"two-sites"}},
	{48, "uploads and long headers", []string{"uploads"}},
	{49, "sessions are fenced in and have DNS", []string{"egress-policy", "dns-pods"}},
	{50, "sessions reach Renku", []string{"renku-address"}},
	{51, "nobody past the login", []string{"ingress-policy"}},
	{52, "no cloud metadata", []string{"metadata-fenced"}},
	{53, "the account of sessions", []string{"session-service-account"}},
	{54, "CA Secrets that sessions mount", []string{"custom-cas-there"}},
	{55, "the kubeconfigs Secret", []string{"kubeconfigs-value", "kubeconfig-stored", "stored-kubeconfig", "stored-server-tls"}},
	{56, "four services mount it, and started after it", []string{"kubeconfigs-mounted", "services-restarted"}},
	{57, "their logs say that it was loaded", []string{"kubeconfig-loaded", "kubeconfig-first-use"}},
	{58, "an admin of Renku", []string{"api-signed-in", "api-admin"}},
	{59, "a Renku that knows the fields", []string{"api-answers", "api-knows-fields"}},
	{60, "the cluster is stored as given", []string{"cluster-registered", "cluster-as-planned"}},
	{61, "one pool, here, with its quota", []string{"pool-made", "pool-as-planned"}},
	{62, "classes fit into the quota", []string{"pool-sizes", "pool-rules"}},
	{63, "the quota's id", []string{"pool-rules"}},
	{64, "somebody may use the pool", []string{"pool-members"}},
	{65, "logins may return to sessions", []string{"redirect-uris", "web-origins"}},
	{66, "the login service answers", []string{"issuer"}},
	{67, "images can be pulled", []string{"image-pulls"}},
	{68, "users' own secrets", []string{"user-secrets"}},
	{69, "a session from end to end", []string{"session-made", "session-pod", "session-volume", "session-ingress", "session-url"}},
}

// Each row has a check, and at most one row in ten is left out. TestStates
// proves that the states' verdicts are what the checks say.
func TestEveryRowIsChecked(t *testing.T) {
	guide, wanted := renku.Guide(), stepstest.Wanted(t, "testdata")
	var out []int
	for i, r := range rows {
		if r.number != i+1 {
			t.Fatalf("row %d stands in the place of row %d", r.number, i+1)
		}
		if len(r.checks) == 0 {
			t.Errorf("row %d (%s): no check looks at it", r.number, r.asks)
		}
		if !slices.ContainsFunc(r.checks, func(name string) bool { return looksAt(t, r, guide, name, wanted[name]) }) {
			out = append(out, r.number)
		}
	}
	if len(rows) != 69 || len(out)*10 > len(rows) {
		t.Errorf("%d of %d rows are left out: %v; at most one in ten may be", len(out), len(rows), out)
	}
}

// looksAt tells whether a check of a row is more than a word that it is left
// out, and asks for a state in which it passes and one in which it does not.
func looksAt(t *testing.T, r row, guide *steps.Guide, name string, states map[steps.Status][]string) bool {
	t.Helper()
	c, _ := guide.Check(name)
	if c == nil {
		t.Errorf("row %d (%s): the guide has no check %q", r.number, r.asks, name)
		return false
	}
	if c.NotChecked != "" {
		return false
	}
	bad := len(states[steps.Fail]) + len(states[steps.Warn])
	if name == "reachable" { // a side that does not answer is all that it can find
		bad += len(states[steps.Unknown])
	}
	if len(states[steps.Pass]) == 0 || bad == 0 {
		t.Errorf("row %d (%s): check %s passes in %d states and fails or warns in %d", r.number, r.asks, name, len(states[steps.Pass]), bad)
	}
	return true
}
