package stepstest

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// addedField is a field that can disable an object when someone adds it.
type addedField struct {
	kinds  []string
	beside []any // the field matters only if carrick writes this path in the object
	at     []string
	value  any
}

// everything is a rule of an admission policy that matches all resources.
var everything = []any{map[string]any{
	"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "operations": []any{"*"}, "resources": []any{"*"},
}}

var addedFields = []addedField{
	{
		[]string{"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"},
		[]any{"spec"},
		[]string{"spec", "matchResources", "namespaceSelector", "matchLabels", "added-by-mutant"},
		"x",
	},
	{
		[]string{"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"},
		[]any{"spec"},
		[]string{"spec", "matchResources", "excludeResourceRules"},
		everything,
	},
	{
		[]string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"},
		[]any{"spec"},
		[]string{"spec", "matchConstraints", "excludeResourceRules"},
		everything,
	},
	{
		[]string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"},
		[]any{"spec"},
		[]string{"spec", "matchConditions"},
		[]any{map[string]any{"name": "added-by-mutant", "expression": "false"}},
	},
	{[]string{"NetworkPolicy"}, []any{"spec"}, []string{"spec", "ingress"}, []any{map[string]any{}}},
	{[]string{"NetworkPolicy"}, []any{"spec"}, []string{"spec", "egress"}, []any{map[string]any{}}},
	{
		[]string{"Deployment"},
		[]any{"spec", "template", "spec", "containers"},
		[]string{"spec", "template", "spec", "hostNetwork"},
		true,
	},
	{[]string{"Service"}, []any{"spec", "ports"}, []string{"spec", "externalIPs"}, []any{"203.0.113.66"}},
}

// added returns the changes that add such fields to an object. writes reports whether carrick writes the field at a
// path.
func added(kind string, object map[string]any, writes func(at []any) bool) []change {
	var out []change
	for _, f := range addedFields {
		at := make([]any, len(f.at))
		for i, key := range f.at {
			at[i] = key
		}
		if !slices.Contains(f.kinds, kind) || has(object, at) || !writes(f.beside) {
			continue
		}
		out = append(out, change{path: pathText(at), what: "added", at: at[:1], edit: func(old any) any {
			m, _ := old.(map[string]any)
			if m == nil {
				m = map[string]any{}
			}
			inner := m
			for _, key := range f.at[1 : len(f.at)-1] {
				next, _ := inner[key].(map[string]any)
				if next == nil {
					next = map[string]any{}
					inner[key] = next
				}
				inner = next
			}
			inner[f.at[len(f.at)-1]] = runtime.DeepCopyJSONValue(f.value)
			return m
		}})
	}
	return out
}
