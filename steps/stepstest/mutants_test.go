package stepstest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	rule := func() map[string]any {
		return map[string]any{"rules": []any{map[string]any{"verbs": []any{"get"}}}, "labels": map[string]any{"a.b": "true"}}
	}
	want := map[string]any{
		"labels deleted": map[string]any{"rules": rule()["rules"]},
		"labels one more": map[string]any{
			"rules": rule()["rules"], "labels": map[string]any{"a.b": "true", "added-by-mutant": "true"},
		},
		"labels[a.b] deleted":       map[string]any{"rules": rule()["rules"], "labels": map[string]any{}},
		"labels[a.b] altered":       map[string]any{"rules": rule()["rules"], "labels": map[string]any{"a.b": "false"}},
		"rules deleted":             map[string]any{"labels": rule()["labels"]},
		"rules one more":            map[string]any{"labels": rule()["labels"], "rules": []any{verbs("get"), verbs("getx")}},
		"rules[0] deleted":          map[string]any{"labels": rule()["labels"], "rules": []any{}},
		"rules[0].verbs deleted":    map[string]any{"labels": rule()["labels"], "rules": []any{map[string]any{}}},
		"rules[0].verbs one more":   map[string]any{"labels": rule()["labels"], "rules": []any{verbs("get", "getx")}},
		"rules[0].verbs[0] altered": map[string]any{"labels": rule()["labels"], "rules": []any{verbs("getx")}},
		"rules[0].verbs[0] deleted": map[string]any{"labels": rule()["labels"], "rules": []any{verbs()}},
	}
	got, original := map[string]any{}, rule()
	for _, c := range changes(original, nil) {
		got[c.path+" "+c.what] = c.apply(original)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(rule(), original); d != "" {
		t.Errorf("a change altered the original:\n%s", d)
	}
}

func verbs(list ...any) map[string]any {
	return map[string]any{"verbs": append([]any{}, list...)}
}

func TestDiffer(t *testing.T) {
	have := map[string]any{"replicas": 2.0, "type": "A", "list": []any{"a", "b"}, "map": map[string]any{"k": "v"}}
	patch := map[string]any{"replicas": 1.0, "type": nil, "list": []any{"a", "c", "d"}, "map": map[string]any{"k": "w"}}
	want := []string{"list[+]", "list[1][-]", "map.k", "replicas<", "type[-]"}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(differ(patch, have, true)))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := differ(map[string]any{"type": "A"}, have, true); len(got) != 0 {
		t.Errorf("a patch that changes nothing differs at %v", got)
	}
}
