package program

import (
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/cmd/carrick/carricktest"
)

// However a demo ends, it leaves no process and no folder behind.
func TestADemoLeavesNothing(t *testing.T) {
	t.Parallel()
	cases.Run(
		t, "crash", "interrupted on its first screen",
		func(t *testing.T) { leavesNothing(t, carricktest.Beginning, (*carricktest.Terminal).Interrupt) },
	)
}

func TestVerifyADemoLeavesNothing(t *testing.T) {
	t.Parallel()
	cases.Run(
		t, "crash", "killed while it starts",
		func(t *testing.T) { leavesNothing(t, carricktest.Starting, (*carricktest.Terminal).Kill) },
	)
	cases.Run(
		t, "crash", "killed on its first screen",
		func(t *testing.T) { leavesNothing(t, carricktest.Beginning, (*carricktest.Terminal).Kill) },
	)
	cases.Run(
		t, "crash", "interrupted while it starts",
		func(t *testing.T) { leavesNothing(t, carricktest.Starting, (*carricktest.Terminal).Interrupt) },
	)
}

func leavesNothing(t *testing.T, when string, end func(*carricktest.Terminal)) {
	t.Parallel()
	p := carricktest.Demo(t, "renku")
	p.Wait(when)
	if n := len(p.Family()); n < 2 {
		t.Fatalf("%d processes were found: this proves nothing", n)
	}
	end(p)
	p.LeftNothing()
}
