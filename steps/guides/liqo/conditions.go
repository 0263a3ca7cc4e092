package liqo

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// condition is one of Liqo's own conditions. Its status is a word that belongs to
// the kind, such as "Accepted" or "Running", and seldom "True".
type condition struct {
	kind, status, reason, message string
	at                            time.Time // of its last transition; zero: not told
}

// conditions are those of a field that is a list of them, in its order.
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

// conditionOf is the condition of a type; zero where there is none.
func conditionOf(all []condition, kind string) condition {
	if i := slices.IndexFunc(all, func(c condition) bool { return c.kind == kind }); i >= 0 {
		return all[i]
	}
	return condition{}
}

// why is what a condition says of its reason: "Reason: message".
func (c condition) why() string {
	return strings.Join(slices.DeleteFunc([]string{c.reason, c.message}, func(s string) bool { return s == "" }), ": ")
}

// lastMoved is when the newest of the conditions changed; where none tells, when
// the object was made.
func lastMoved(o *unstructured.Unstructured, all []condition) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, c := range all {
		if c.at.After(at) {
			at = c.at
		}
	}
	return at
}

// firstSet returns the time of the oldest of the conditions; without any, when the object was created.
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
