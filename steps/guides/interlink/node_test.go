package interlink_test

import (
	"testing"

	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// A Deployment in a tenant's namespace that has the virtual kubelet's name does not decide whose configuration carrick
// changes.
func TestATenantDoesNotChooseTheVirtualKubelet(t *testing.T) {
	const sections = `-- local --
apiVersion: apps/v1
kind: Deployment
metadata: {name: virtual-node-node, namespace: a-tenant, labels: {app: virtual-node}}
spec: {template: {spec: {containers: [{name: inttw, image: "registry.example.org/vk:1"}]}}}
---
`
	const gone = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: virtual-node-rolebinding}
`
	for name, c := range map[string]struct{ local, want, from string }{
		"the chart's account": {
			gone + "subjects: [{kind: ServiceAccount, name: virtual-node, namespace: elsewhere}]", "elsewhere",
			"from ClusterRoleBinding virtual-node-rolebinding",
		},
		"no such account": {
			gone + "subjects: [{kind: User, name: virtual-node}]", "interlink", "from the published guide",
		},
		"no ClusterRoleBinding": {gone + "$delete: true", "interlink", "from the published guide"},
	} {
		s := stepstest.StandWith(t, interlink.Guide(), assets, "testdata", "healthy", sections+c.local)
		if err := s.Answer("vk.namespace", nil); err != nil {
			t.Fatal(err)
		}
		for _, a := range s.Answers(t.Context(), s.Guide().Step("sides")) {
			if a.Question.Key == "vk.namespace" && (a.Value != c.want || a.From != c.from) {
				t.Errorf("%s: the namespace is %v, from %s", name, a.Value, a.From)
			}
		}
	}
}
