package ondemand_test

import (
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps/check"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

func bench() stepstest.Bench {
	const secrets = `{"apiGroups":[""],"resources":["secrets"],"verbs":["get","create","update","patch"]}`
	rules := func(more string) func(testing.TB, *cluster.Cluster) {
		return func(tb testing.TB, c *cluster.Cluster) {
			patch := `{"rules":[` + secrets + more + `]}`
			if _, err := c.Patch(
				tb.Context(), check.ClusterRoles, "", "ood-initializer", []byte(patch), cluster.PatchOptions{Manager: "bench"},
			); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return stepstest.Bench{
		Guide: ondemand.Guide(), Assets: assets, Counted: "ondemand",
		Answers: func(tb testing.TB, box *clustertest.Sandbox, remote string) map[string]any {
			return stepstest.Given(tb, box, ondemand.Guide(), map[string]any{"cluster.server": remote})
		},
		Reads: [][]string{
			{"get", "namespace", "ondemand"},
			{"get", "nodes"},
			{"get", "clusterroles", "ood-user"},
			{"get", "clusterrolebindings"},
			{"get", "-n", "ondemand", "serviceaccounts", "ondemand"},
			{"get", "-n", "user-alice", "rolebindings"},
			{"get", "-n", "user-alice", "networkpolicies"},
			{"auth", "can-i", "create", "pods", "-n", "user-alice"},
		},
		Breaks: "initializer-role", Break: rules(""),
		FixedBy: rules(
			`,{"apiGroups":[""],"resources":["services","pods"],"verbs":["get"]},{"apiGroups":[""],"resources":["configmaps"],"verbs":["update","get","patch"]}`,
		),
	}
}

func BenchmarkPass(b *testing.B)   { bench().Pass(b) }
func BenchmarkChange(b *testing.B) { bench().Change(b) }
func BenchmarkIdle(b *testing.B)   { bench().Idle(b) }
func BenchmarkMemory(b *testing.B) { bench().Memory(b) }
