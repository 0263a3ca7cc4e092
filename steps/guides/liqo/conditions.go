package liqo

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// condition is a condition of a Liqo object. For many condition types, the status is a word such as "Accepted" or
// "Running" instead of "True".
type condition struct {
	kind, status, reason, message string
	at                            time.Time // time of the last transition, or zero if unknown
}

// conditions returns the conditions at the given field path, in their original order.
func conditions(o *unstructured.Unstructured, fields ...string) []condition {
	found, _, _ := unstructured.NestedSlice(o.Object, fields...)
	return conditionsOf(found)
}

func conditionsOf(found []any) []condition {
	var out []condition
	for _, f := range found {
		m, _ := f.(map[string]any)
		word := func(key string) string { s, _ := m[key].(string); return s }
		at, _ := time.Parse(time.RFC3339, word("lastTransitionTime"))
		out = append(out, condition{word("type"), word("status"), word("reason"), word("message"), at})
	}
	return out
}

// conditionOf returns the condition with the given type, or a zero condition if there is none.
func conditionOf(all []condition, kind string) condition {
	if i := slices.IndexFunc(all, func(c condition) bool { return c.kind == kind }); i >= 0 {
		return all[i]
	}
	return condition{}
}

// why returns "REASON: MESSAGE", without the parts that are empty.
func (c condition) why() string {
	return strings.Join(slices.DeleteFunc([]string{c.reason, c.message}, func(s string) bool { return s == "" }), ": ")
}

// lastMoved returns the latest transition time of the conditions, or the object's creation time if that is later.
func lastMoved(o *unstructured.Unstructured, all []condition) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, c := range all {
		if c.at.After(at) {
			at = c.at
		}
	}
	return at
}

// firstSet returns the earliest transition time of the conditions, or the object's creation time if no condition has a
// transition time.
func firstSet(o *unstructured.Unstructured, all []condition) time.Time {
	var at time.Time
	for _, c := range all {
		if !c.at.IsZero() && (at.IsZero() || c.at.Before(at)) {
			at = c.at
		}
	}
	if at.IsZero() {
		return o.GetCreationTimestamp().Time
	}
	return at
}
