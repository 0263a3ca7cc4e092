package stepstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// clusterAdmin exists in every real cluster but in no state.
const clusterAdmin = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cluster-admin}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}, {nonResourceURLs: ["*"], verbs: ["*"]}]
---`

// extraObjects maps descriptions to objects of the kinds whose effects add up. Each namespace in which a guide writes
// gets each object. %[1]s is the namespace, and %[2]s is the list of subjects of the bindings.
var extraObjects = map[string]string{
	"a RoleBinding to cluster-admin": clusterAdmin + `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: added-by-mutant, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: %[2]s
`,
	"a ClusterRoleBinding to cluster-admin": clusterAdmin + `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: added-by-mutant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: %[2]s
`,
	"a NetworkPolicy that allows everything": `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: added-by-mutant, namespace: %[1]s}
spec: {podSelector: {}, policyTypes: [Ingress, Egress], ingress: [{}], egress: [{}]}
`,
	"a NetworkPolicy that denies everything": `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: added-by-mutant, namespace: %[1]s}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
`,
	zeroQuota: `
apiVersion: v1
kind: ResourceQuota
metadata: {name: added-by-mutant, namespace: %[1]s}
spec:
  hard: &zero
    {pods: "0", requests.cpu: "0", requests.memory: "0", limits.cpu: "0", limits.memory: "0", services: "0", secrets: "0",
    persistentvolumeclaims: "0", requests.storage: "0"}
status: {hard: *zero, used: *zero}
`,
	"a LimitRange": `
apiVersion: v1
kind: LimitRange
metadata: {name: added-by-mutant, namespace: %[1]s}
spec:
  limits:
  - {type: Container, max: {cpu: 1m, memory: 1Mi}}
  - {type: Pod, max: {cpu: 1m, memory: 1Mi}}
  - {type: PersistentVolumeClaim, max: {storage: 1Ki}}
`,
	"a webhook without a backend": `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: added-by-mutant}
webhooks:
- name: added.by.mutant
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: absent, namespace: %[1]s, path: /, port: 443}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  objectSelector: {}
  matchPolicy: Equivalent
  timeoutSeconds: 10
  rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"], scope: "*"}]
`,
	"a ValidatingAdmissionPolicy that denies everything": `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: added-by-mutant}
spec:
  failurePolicy: Fail
  matchConstraints:
    matchPolicy: Equivalent
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    objectSelector: {}
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"], scope: "*"}]
  validations: [{expression: "false"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: added-by-mutant}
spec: {policyName: added-by-mutant, validationActions: [Deny]}
`,
}

// zeroQuota rejects new objects that it counts, but not changes to existing objects.
const zeroQuota = "a ResourceQuota of zero"

// refusals maps descriptions of extra objects to the API server's responses to dry runs while such an object exists.
var refusals = map[string]admission{
	zeroQuota:                     {Deny: "exceeded quota: added-by-mutant"},
	"a webhook without a backend": {Fault: `"added.by.mutant": service "absent" not found`},
	"a ValidatingAdmissionPolicy that denies everything": {
		Deny: "ValidatingAdmissionPolicy 'added-by-mutant' denied request",
	},
}

// extras returns the mutants with one additional object from extraObjects.
func (b *mutantBase) extras(srv *server) []mutant {
	spaces, subjects := map[string]bool{}, map[string]any{}
	for o := range b.made {
		if !slices.Contains(srv.objects, o) {
			continue
		}
		if o.GetNamespace() != "" {
			spaces[o.GetNamespace()] = true
		}
		if o.GetKind() == "ServiceAccount" {
			account := map[string]any{"kind": "ServiceAccount", "name": o.GetName(), "namespace": o.GetNamespace()}
			subjects[o.GetNamespace()+"/"+o.GetName()] = account
		}
		list, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		for _, s := range list {
			subject, _ := s.(map[string]any)
			subjects[fmt.Sprint(subject["namespace"], "/", subject["name"])] = subject
		}
	}
	var out []mutant
	onceASide := map[string]bool{}
	for _, space := range slices.Sorted(maps.Keys(spaces)) {
		for _, what := range slices.Sorted(maps.Keys(extraObjects)) {
			if !strings.Contains(extraObjects[what], "%[2]s") {
				out = append(out, b.extra(srv, space, what, what, nil))
				continue
			}
			for _, who := range slices.Sorted(maps.Keys(subjects)) {
				if strings.HasPrefix(what, "a ClusterRoleBinding") {
					if onceASide[who] {
						continue
					}
					onceASide[who] = true
				}
				out = append(out, b.extra(srv, space, what, what+" of "+who, subjects[who]))
			}
		}
	}
	return out
}

func (b *mutantBase) extra(srv *server, space, what, title string, subject any) mutant {
	return mutant{fmt.Sprintf("%s %s: %s added", srv.side, space, title), what, b.passes, func(t *testing.T) func() {
		who := string(mustJSON(t, []any{subject}))
		text := strings.ReplaceAll(strings.ReplaceAll(extraObjects[what], "%[1]s", space), "%[2]s", who)
		objects := slices.Clone(srv.objects)
		for doc := range strings.SplitSeq(text, "---\n") {
			var o map[string]any
			if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, &unstructured.Unstructured{Object: plainJSON(o).(map[string]any)})
		}
		var more []admission
		if a, is := refusals[what]; is {
			resources := slices.Clone(tried)
			for o := range b.made {
				if _, resource := resourceOf(o); what != zeroQuota && o.GetNamespace() == space {
					resources = append(resources, resource)
				}
			}
			for _, resource := range resources {
				a.Resource, a.Namespace = resource, space
				more = append(more, a)
			}
		}
		return srv.become(srv.with(objects, more...))
	}}
}
