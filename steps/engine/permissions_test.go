package engine

import (
	"strings"
	"testing"

	"carrick/cluster/permission"
	"carrick/steps"
)

// A user who can bind every role, or approve for every signer, can obtain all permissions. So such a permission is
// granted only for the required name.
func TestGrantsAreForOneNameWhereThatCounts(t *testing.T) {
	got := steps.Grant("g", []permission.Rule{
		{Verb: "get", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "small"},
		{Verb: "approve", Group: "certificates.k8s.io", Resource: "signers", Name: "kubernetes.io/kube-apiserver-client"},
		{Verb: "delete", Resource: "namespaces", Name: "one"},
		{Verb: "get", Resource: "namespaces"},
	})
	for _, want := range []string{
		"  resourceNames:\n  - small\n  resources:\n  - clusterroles\n  verbs:\n  - bind\n",
		"  resourceNames:\n  - kubernetes.io/kube-apiserver-client\n  resources:\n  - signers\n  verbs:\n  - approve\n",
		"  resources:\n  - namespaces\n  verbs:\n  - delete\n  - get\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks\n%s\nin\n%s", want, got)
		}
	}
	if n := strings.Count(got, "resourceNames"); n != 2 {
		t.Errorf("%d rules are for names:\n%s", n, got)
	}
}
