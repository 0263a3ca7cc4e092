package renku

import (
	"strings"
	"testing"

	"carrick/cluster/kubeconfig"
	"carrick/steps"
)

// judgeAddress judges a server address from the perspective of Renku's pods.
func TestAddressesForRenkusPods(t *testing.T) {
	const (
		fromInside = "set reach.job to yes to test the address from inside the local cluster"
		reachable  = "set remote.server to an address that Renku's pods can reach: a load balancer or a node, port 6443"
		rancher    = "set remote.server to the cluster's own address (Rancher: Authorized Cluster Endpoint)"
	)
	for _, tc := range []struct {
		server string
		status steps.Status
		found  string
		fix    string
	}{
		{"https://api.example.org:6443", steps.Pass, "", ""},
		{"https://203.0.113.7:6443", steps.Pass, "", ""},
		{
			"https://10.1.2.3:6443", steps.Warn, "is a private address, which must be routed between the two clusters",
			fromInside,
		},
		{"https://[fd00::1]:6443", steps.Warn, "is a private address", fromInside},
		{"https://127.0.0.1:6443", steps.Fail, "127.0.0.1 in Renku's pods points to the pod itself", reachable},
		{"https://0.0.0.0:6443", steps.Fail, "0.0.0.0 is not a server address", reachable},
		{
			"https://kubernetes.default.svc", steps.Fail, "in Renku's pods points to the local cluster's own API server",
			reachable,
		},
		{"https://api.kube-system.svc.cluster.local", steps.Fail, "points to the local cluster's own API server", reachable},
		{"https://rancher.example.org/k8s/clusters/c-1", steps.Fail, "is Rancher's authenticating proxy", rancher},
		{"https://%zz", steps.Fail, "the server is not a valid address", "set remote.server to a valid https URL"},
	} {
		r := judgeAddress(kubeconfig.Config{Server: tc.server}, steps.Facts{})
		if r.Status != tc.status || !strings.Contains(r.Found, tc.found) || r.Fix != tc.fix {
			t.Errorf("%s: %s: %s; fix %q", tc.server, r.Status, r.Found, r.Fix)
		}
	}
}
