package liqo_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

var tenantResource = schema.GroupVersionResource{
	Group: "authentication.liqo.io", Version: "v1beta1", Resource: "tenants",
}

func bench() stepstest.Bench {
	const space = "liqo-tenant-milan"
	condition := func(condition string) func(testing.TB, *cluster.Cluster) {
		return func(tb testing.TB, c *cluster.Cluster) {
			patch := `{"spec":{"authzPolicy":"` + condition + `"}}`
			if _, err := c.Patch(
				tb.Context(), tenantResource, space, "milan", []byte(patch), cluster.PatchOptions{Manager: "bench"},
			); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return stepstest.Bench{
		Guide: liqo.Guide(), Assets: assets, Counted: space,
		Answers: func(_ testing.TB, _ *clustertest.Sandbox, remote string) map[string]any {
			return map[string]any{"provider.server": remote}
		},
		Reads: [][]string{
			{"get", "namespace", "kube-system"},
			{"get", "namespaces", "-l", "liqo.io/remote-cluster-id=milan"},
			{"get", "nodes"},
			{"get", "-n", "liqo", "deployments"},
			{"get", "-n", "liqo", "networks.ipam.liqo.io"},
			{"get", "-n", space, "gatewayservers.networking.liqo.io"},
			{"get", "-n", space, "secret", "gw-keys"},
			{"auth", "can-i", "create", "tenants.authentication.liqo.io", "-n", space},
		},
		Breaks: "tenant", Break: condition("KeysExchange"), FixedBy: condition("TolerateNoHandshake"),
	}
}

func BenchmarkPass(b *testing.B)   { bench().Pass(b) }
func BenchmarkChange(b *testing.B) { bench().Change(b) }
func BenchmarkIdle(b *testing.B)   { bench().Idle(b) }
func BenchmarkMemory(b *testing.B) { bench().Memory(b) }
