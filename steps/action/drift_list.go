package action

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

// addition is something that another writer added to an object. Server-side apply keeps it, but it can defeat what
// carrick wrote. For example, a match condition that is never true disables an admission policy.
type addition struct {
	at string          // such as "spec.matchConditions[name]"
	op []steps.PatchOp // the operations that remove the addition
}

// risky maps each field that can lift one of carrick's restrictions to a sibling field that carrick writes.
var risky = map[string]string{
	"hostNetwork": "containers", "hostPID": "containers", "hostIPC": "containers", "initContainers": "containers",
	"externalIPs": "ports",
}

// additions returns what other writers added to an object. It reports elements of lists in which carrick writes named
// elements, risky fields, and any field of an admission policy or its binding. Elements of one list are in descending
// order, so that removing one does not shift the others.
func additions(want, live map[string]any) []addition {
	var out []addition
	version, _ := want["apiVersion"].(string)
	policy := strings.HasPrefix(version, admissionregistrationv1.GroupName+"/")
	var walk func(at, pointer string, want, live any)
	walk = func(at, pointer string, want, live any) {
		switch w := want.(type) {
		case map[string]any:
			l, _ := live.(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(union(w, l))) {
				if pointer == "" && (key == "metadata" || key == "status") {
					continue
				}
				inner := pointer + steps.Pointer(key)
				if _, written := w[key]; written {
					walk(under(at, key), inner, w[key], l[key])
				} else if policy && !restrictsNothing(l[key]) || l[key] != nil && w[risky[key]] != nil {
					out = append(out, addition{under(at, key), []steps.PatchOp{{Op: "remove", Path: inner}}})
				}
			}
		case []any:
			l, _ := live.([]any)
			names := namesOf(w)
			for i, v := range slices.Backward(l) {
				name := nameOf(v)
				switch j := slices.Index(names, name); {
				case name == "" || len(names) < len(w):
				case j < 0:
					element := pointer + steps.Pointer(i)
					out = append(out, addition{at + "[" + shownValue(name, longestValue) + "]", []steps.PatchOp{
						{Op: "test", Path: element + "/name", Value: name}, {Op: "remove", Path: element},
					}})
				default:
					walk(at+"["+name+"]", pointer+steps.Pointer(i), w[j], v)
				}
			}
		}
	}
	walk("", "", want, live)
	return out
}

// restrictsNothing reports whether v is empty or an API server default. Such a value of an admission policy does not
// restrict the policy.
func restrictsNothing(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if !restrictsNothing(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return slices.Contains([]any{nil, "Equivalent", "*", "Fail", "Never"}, v)
}

func namesOf(list []any) []string {
	var out []string
	for _, v := range list {
		if name := nameOf(v); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func nameOf(v any) string {
	m, _ := v.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

func additionNames(list []addition) []string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.at + wasAdded
	}
	return out
}

// removeAdditions returns the command that removes the additions. An apply would keep them.
func removeAdditions(env steps.Env, live *unstructured.Unstructured, list []addition) string {
	var ops []steps.PatchOp
	for _, a := range list {
		ops = append(ops, a.op...)
	}
	at := env.Kubectl()
	if ns := live.GetNamespace(); ns != "" {
		at += " -n " + steps.Quoted(ns)
	}
	return fmt.Sprintf(
		"%s patch %s %s %s", at, strings.ToLower(live.GetKind()), steps.Quoted(live.GetName()), steps.JSONPatch(ops...),
	)
}
