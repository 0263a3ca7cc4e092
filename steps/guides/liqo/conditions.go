package liqo

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// condition is one of Liqo's own conditions. Its status is specific to the condition type, such
// as "Accepted" or "Running", and seldom "True".
type condition struct {
	kind, status, reason, message string
	at                            time.Time // time of the last transition; zero: unknown
}

// conditions returns the conditions in a list field, in its order.
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

// conditionOf returns the condition of a type, or a zero condition if there is none.
func conditionOf(all []condition, kind string) condition {
	if i := slices.IndexFunc(all, func(c condition) bool { return c.kind == kind }); i >= 0 {
		return all[i]
	}
	return condition{}
}

// why returns the condition's reason and message: "Reason: message".
func (c condition) why() string {
	return strings.Join(slices.DeleteFunc([]string{c.reason, c.message}, func(s string) bool { return s == "" }), ": ")
}

// lastMoved returns the time of the last transition of all conditions, or the object's creation
// time if none has one.
func lastMoved(o *unstructured.Unstructured, all []condition) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, c := range all {
		if c.at.After(at) {
			at = c.at
		}
	}
	return at
}

// firstSet returns the time of the oldest condition, or the object's creation time if there is
// none.
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
