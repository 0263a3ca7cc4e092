package renku_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

const benchSpace = "bench-sessions"

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func bench() stepstest.Bench {
	level := func(level string) func(testing.TB, *cluster.Cluster) {
		return func(tb testing.TB, c *cluster.Cluster) {
			patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":` + level + `}}}`
			if _, err := c.Patch(
				tb.Context(), namespaces, "", benchSpace, []byte(patch), cluster.PatchOptions{Manager: "bench"},
			); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return stepstest.Bench{
		Guide: renku.Guide(), Assets: assets, Counted: benchSpace,
		Answers: func(tb testing.TB, box *clustertest.Sandbox, remote string) map[string]any {
			return site(tb, box, map[string]any{"sessions.namespace": benchSpace, "remote.server": remote})
		},
		Reads: [][]string{
			{"get", "namespace", "kube-system"},
			{"get", "namespace", benchSpace},
			{"get", "nodes"},
			{"get", "storageclasses"},
			{"get", "-n", benchSpace, "serviceaccount", "renku-bench"},
			{"get", "-n", benchSpace, "rolebindings"},
			{"get", "-n", benchSpace, "secret", "renku-bench-token"},
			{"auth", "can-i", "list", "pods", "-n", benchSpace},
		},
		Breaks: "pod-security", Break: level(`"restricted"`), FixedBy: level(`"baseline"`),
	}
}

func BenchmarkPass(b *testing.B)   { bench().Pass(b) }
func BenchmarkChange(b *testing.B) { bench().Change(b) }
func BenchmarkIdle(b *testing.B)   { bench().Idle(b) }
func BenchmarkMemory(b *testing.B) { bench().Memory(b) }
