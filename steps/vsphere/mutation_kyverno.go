package vsphere

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
)

// kyvernoKinds are Kyverno's policies that change what is made (kyverno/kyverno:
// api/kyverno/v1, api/policies.kyverno.io/v1).
var kyvernoKinds = []schema.GroupVersionResource{
	{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"},
	{Group: "kyverno.io", Version: "v1", Resource: "policies"},
	{Group: "policies.kyverno.io", Version: "v1", Resource: "mutatingpolicies"},
	{Group: "policies.kyverno.io", Version: "v1alpha1", Resource: "mutatingpolicies"},
}

// kyvernoPolicy is the ClusterPolicy that exchanges classes. A claim with the
// class "" has one, and keeps it: in Kyverno's language "" counts as nothing, so
// that is asked for by the key.
func kyvernoPolicy(e steps.Env) *unstructured.Unstructured {
	key, value := selector(e)
	from := []any{}
	for _, name := range e.Answers.List("mutation.from") {
		from = append(from, name)
	}
	type m = map[string]any
	return &unstructured.Unstructured{Object: m{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy",
		"metadata": m{"name": policyName},
		"spec": m{
			"failurePolicy": e.Answers.Text("mutation.fail"),
			"rules": []any{m{
				"name": policyName,
				"match": m{"any": []any{m{"resources": m{
					"kinds": []any{"PersistentVolumeClaim"}, "operations": []any{"CREATE"},
					"namespaceSelector": m{"matchLabels": m{key: value}},
				}}}},
				"preconditions": m{
					"all": []any{m{"key": "ReadWriteMany", "operator": "AnyIn", "value": "{{ request.object.spec.accessModes || `[]` }}"}},
					"any": []any{
						m{"key": "{{ contains(keys(request.object.spec), 'storageClassName') }}", "operator": "Equals", "value": false},
						m{"key": "{{ request.object.spec.storageClassName || '' }}", "operator": "AnyIn", "value": from},
					},
				},
				"mutate": m{"patchStrategicMerge": m{"spec": m{"storageClassName": class(e)}}},
			}},
		},
	}}
}

// kyvernoMutators are Kyverno's policies that speak of the class of claims; none
// where there is no Kyverno.
func kyvernoMutators(ctx context.Context, e steps.Env) ([]mutator, error) {
	var out []mutator
	for _, kind := range kyvernoKinds {
		all, err := e.Cluster.List(ctx, kind, "", cluster.Selector{})
		if errors.Is(err, cluster.ErrNotServed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range all {
			raw, err := o.MarshalJSON()
			if err != nil {
				return nil, err
			}
			text := strings.ToLower(string(raw))
			if strings.Contains(text, "persistentvolumeclaim") && strings.Contains(text, "storageclassname") && strings.Contains(text, "mutat") {
				out = append(out, mutator{by: byKyverno, kind: o.GetKind(), name: qualified(o.GetNamespace(), o.GetName()), resource: kind.GroupResource().String(), sure: true})
			}
		}
	}
	return out, nil
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
