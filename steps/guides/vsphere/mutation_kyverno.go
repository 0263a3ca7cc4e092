package vsphere

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/steps"
)

// kyvernoKinds lists the resources of the Kyverno policies that can change new objects
// (kyverno/kyverno: api/kyverno/v1, api/policies.kyverno.io/v1).
var kyvernoKinds = []schema.GroupVersionResource{
	{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"},
	{Group: "kyverno.io", Version: "v1", Resource: "policies"},
	{Group: "policies.kyverno.io", Version: "v1", Resource: "mutatingpolicies"},
	{Group: "policies.kyverno.io", Version: "v1beta1", Resource: "mutatingpolicies"},
	{Group: "policies.kyverno.io", Version: "v1alpha1", Resource: "mutatingpolicies"},
}

// kyvernoPolicy returns the ClusterPolicy that sets the shared StorageClass. A claim with
// storageClassName "" must stay unchanged. Because Kyverno's expressions treat "" as missing, the
// policy tests whether the key exists.
func kyvernoPolicy(e steps.Env) *unstructured.Unstructured {
	key, value := namespaceSelector(e)
	from := []any{}
	for _, name := range e.Answers.List("mutation.replaces") {
		from = append(from, name)
	}
	type m = map[string]any
	return &unstructured.Unstructured{Object: m{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy",
		"metadata": m{"name": policyName},
		"spec": m{
			"failurePolicy": e.Answers.Text("mutation.failure-policy"),
			"rules": []any{m{
				"name": policyName,
				"match": m{"any": []any{m{"resources": m{
					"kinds": []any{"PersistentVolumeClaim"}, "operations": []any{"CREATE"},
					"namespaceSelector": m{"matchLabels": m{key: value}},
				}}}},
				"preconditions": m{
					"all": []any{
						m{"key": "ReadWriteMany", "operator": "AnyIn", "value": "{{ request.object.spec.accessModes || `[]` }}"},
						m{"key": "{{ request.object.spec.volumeName || '' }}", "operator": "Equals", "value": ""},
					},
					"any": []any{
						m{"key": "{{ contains(keys(request.object.spec), 'storageClassName') }}", "operator": "Equals", "value": false},
						m{"key": "{{ request.object.spec.storageClassName || '' }}", "operator": "AnyIn", "value": from},
					},
				},
				"mutate": m{"patchStrategicMerge": m{"spec": m{"storageClassName": sharedClassName(e)}}},
			}},
		},
	}}
}

// kyvernoMutators returns the Kyverno policies that change the StorageClass of claims, or none if Kyverno is not
// installed. If a policy is served in several versions, kyvernoMutators returns it once.
func kyvernoMutators(ctx context.Context, e steps.Env) ([]mutator, error) {
	var out []mutator
	seen := map[types.UID]bool{}
	e.Cluster.StartList("", kyvernoKinds...)
	for _, kind := range kyvernoKinds {
		all, err := e.Cluster.List(ctx, kind, "", cluster.Selector{})
		if errors.Is(err, failure.ErrNotServed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			if !changesClass(o) || (o.GetUID() != "" && seen[o.GetUID()]) {
				continue
			}
			seen[o.GetUID()] = true
			out = append(
				out,
				mutator{
					by: byKyverno, kind: o.GetKind(), name: qualified(o.GetNamespace(), o.GetName()),
					resource: kind.GroupResource().String(), sure: true,
				},
			)
		}
	}
	return out, nil
}

// changesClass reports whether a Kyverno policy changes the StorageClass of claims. It checks a
// MutatingPolicy as a whole, and other policies rule by rule. It ignores conditions and status.
func changesClass(o *unstructured.Unstructured) bool {
	if whole, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "mutations"); found {
		matched, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "matchConstraints")
		return containsWord(matched, "persistentvolumeclaim") && containsWord(whole, "storageclassname")
	}
	rules, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "rules")
	list, _ := rules.([]any)
	return slices.ContainsFunc(list, func(r any) bool {
		rule, _ := r.(map[string]any)
		return containsWord(rule["match"], "persistentvolumeclaim") && containsWord(rule["mutate"], "storageclassname")
	})
}

// containsWord reports whether the JSON of part contains word, ignoring case. word must be in lower case.
func containsWord(part any, word string) bool {
	raw, err := json.Marshal(part)
	return err == nil && strings.Contains(strings.ToLower(string(raw)), word)
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
