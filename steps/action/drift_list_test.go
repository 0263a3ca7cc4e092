package action

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdditions(t *testing.T) {
	named := func(names ...string) []any {
		out := []any{}
		for _, name := range names {
			out = append(out, map[string]any{"name": name})
		}
		return out
	}
	deployment := func(spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": "apps/v1", "metadata": map[string]any{"name": "x"}, "spec": spec}
	}
	policy := func(spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "spec": spec}
	}
	for name, c := range map[string]struct {
		want, live map[string]any
		found      []string
	}{
		"nothing": {
			deployment(map[string]any{"containers": named("a")}), deployment(map[string]any{"containers": named("a")}), nil,
		},
		"what API servers fill in": {
			policy(map[string]any{"policyName": "x"}),
			policy(map[string]any{
				"policyName":     "x",
				"matchResources": map[string]any{"matchPolicy": "Equivalent", "objectSelector": map[string]any{}},
			}),
			nil,
		},
		"fields of another writer": {
			deployment(map[string]any{"containers": named("a")}),
			deployment(map[string]any{"containers": named("a"), "dnsPolicy": "ClusterFirst"}), nil,
		},
		"containers, the last first": {
			deployment(map[string]any{"containers": named("a")}), deployment(map[string]any{"containers": named("b", "a", "c")}),
			[]string{
				`{"op":"test","path":"/spec/containers/2/name","value":"c"},{"op":"remove","path":"/spec/containers/2"}`,
				`{"op":"test","path":"/spec/containers/0/name","value":"b"},{"op":"remove","path":"/spec/containers/0"}`,
			},
		},
		"the node's network": {
			deployment(map[string]any{"containers": named("a")}),
			deployment(map[string]any{"containers": named("a"), "hostNetwork": true}),
			[]string{`{"op":"remove","path":"/spec/hostNetwork"}`},
		},
		"a restriction of a policy": {
			policy(map[string]any{"policyName": "x"}),
			policy(
				map[string]any{"policyName": "x", "matchResources": map[string]any{"namespaceSelector": map[string]any{"a": "b"}}},
			),
			[]string{`{"op":"remove","path":"/spec/matchResources"}`},
		},
	} {
		var got []string
		for _, a := range additions(c.want, c.live) {
			ops, err := json.Marshal(a.op)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.Trim(string(ops), "[]"))
		}
		if d := cmp.Diff(c.found, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
