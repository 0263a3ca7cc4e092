package renku

import (
	"strings"
	"testing"

	"carrick/cluster"
	"carrick/steps"
)

// What an address means in Renku's pods.
func TestAddressesForRenkusPods(t *testing.T) {
	for _, tc := range []struct {
		server string
		status steps.Status
		found  string
	}{
		{"https://api.example.org:6443", steps.Pass, ""},
		{"https://203.0.113.7:6443", steps.Pass, ""},
		{"https://10.1.2.3:6443", steps.Warn, "private"},
		{"https://[fd00::1]:6443", steps.Warn, "private"},
		{"https://0.0.0.0:6443", steps.Fail, "no address of a server"},
		{"https://kubernetes.default.svc", steps.Fail, "local cluster's own"},
		{"https://api.kube-system.svc.cluster.local", steps.Fail, "local cluster's own"},
		{"https://rancher.example.org/k8s/clusters/c-1", steps.Fail, "Rancher"},
	} {
		r := judgeAddress(cluster.Kubeconfig{Server: tc.server}, steps.Facts{})
		if r.Status != tc.status || !strings.Contains(r.Found, tc.found) || (r.Status != steps.Pass && r.Fix == "") {
			t.Errorf("%s: %s: %s; fix %q", tc.server, r.Status, r.Found, r.Fix)
		}
	}
}
