package liqo_test

import (
	"strings"
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// TestUpstreamConsumers peers two consumers with one provider. The second consumer is a control plane of another
// sandbox.
func TestUpstreamConsumers(t *testing.T) {
	src := upstream.Find(t, "liqo")
	bin := src.Build(t, "./cmd/liqo-controller-manager", "./cmd/crd-replicator", "./cmd/webhook", "./cmd/virtual-kubelet")
	box := clustertest.Start(t)
	box.Reset(t)
	more := clustertest.Another(t)
	realLiqo(t, box, src, bin, clustertest.Local, "milan", nil)
	realLiqo(t, more, src, bin, clustertest.Local, "turin", nil)
	realLiqo(t, box, src, bin, clustertest.Remote, "rome", nil)
	open := func(t *testing.T, name string, consumer *clustertest.Sandbox) *engine.Session {
		t.Helper()
		answers := map[string]any{"network.enabled": false}
		return stepstest.OpenWith(t, liqo.Guide(), assets, name, answers, map[steps.Side]engine.Endpoint{
			steps.Local:  {Cluster: consumer.Open(t, clustertest.Local, cluster.Options{}), Name: "consumer-of-" + name},
			steps.Remote: {Cluster: box.Open(t, clustertest.Remote, cluster.Options{}), Name: box.Contexts[clustertest.Remote]},
		})
	}
	src.Try(t, "two consumers on one provider: both are green", func(t *testing.T) {
		first, second := open(t, "first", box), open(t, "second", more)
		stepstest.Apply(t, first)
		stepstest.Apply(t, second)
		stepstest.Green(t, first)
		stepstest.Green(t, second)
	})
	offloaded := func(t *testing.T) string {
		t.Helper()
		return box.Run(t, clustertest.Remote, "", "get", "namespaces,tenants.authentication.liqo.io", "-A", "-o", "name")
	}
	src.Try(t, "undo of one consumer leaves the other's peering green", func(t *testing.T) {
		stepstest.Undo(t, open(t, "first", box))
		left := offloaded(t)
		if strings.Contains(left, "milan") || !strings.Contains(left, "namespace/demo-turin") {
			t.Errorf("the provider has\n%s", left)
		}
		again := open(t, "second", more)
		stepstest.Green(t, again)
		if p := planOf(t, again); !p.Empty() {
			t.Errorf("apply of the other one would change: %+v", p.Actions)
		}
	})
	src.Try(t, "undo of both leaves nothing on the provider", func(t *testing.T) {
		stepstest.Undo(t, open(t, "second", more))
		if left := offloaded(t); strings.Contains(left, "turin") {
			t.Errorf("the provider has\n%s", left)
		}
	})
}
