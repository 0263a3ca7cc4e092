package interlink_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

var serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

func bench() stepstest.Bench {
	// the jobs' account gives its pods a token, or not
	mounts := func(whether string) func(testing.TB, *cluster.Cluster) {
		return func(tb testing.TB, c *cluster.Cluster) {
			patch := `{"automountServiceAccountToken":` + whether + `}`
			if _, err := c.Patch(
				tb.Context(), serviceAccounts, "default", "default", []byte(patch), cluster.PatchOptions{Manager: "bench"},
			); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return stepstest.Bench{
		Guide: interlink.Guide(), Assets: assets, TakesOver: true, Counted: "interlink-api",
		Answers: func(tb testing.TB, box *clustertest.Sandbox, _ string) map[string]any {
			return stepstest.Given(tb, box, interlink.Guide(), nil)
		},
		Reads: [][]string{
			{"get", "node", "virtual-node"},
			{"get", "-n", "interlink", "pods"},
			{"get", "-n", "interlink", "configmap", "virtual-node-virtual-kubelet-config"},
			{"get", "clusterroles"},
			{"get", "-n", "interlink-api", "secret", "web-ssl-kubernetes-api"},
			{"get", "-n", "interlink-api", "service", "k8s-api-proxy"},
			{"get", "-n", "interlink-api", "deployment", "k8s-api-proxy"},
			{"auth", "can-i", "create", "serviceaccounts/token"},
		},
		Breaks: "account-exists", Break: mounts("false"), FixedBy: mounts("null"),
	}
}

func BenchmarkPass(b *testing.B)   { bench().Pass(b) }
func BenchmarkChange(b *testing.B) { bench().Change(b) }
func BenchmarkIdle(b *testing.B)   { bench().Idle(b) }
func BenchmarkMemory(b *testing.B) { bench().Memory(b) }
