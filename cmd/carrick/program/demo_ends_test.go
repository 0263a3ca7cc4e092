package program

import (
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/cmd/carrick/carricktest"
)

// However a demo ends, it leaves no process and no folder behind.
func TestVerifyADemoLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct {
		when string
		end  func(*carricktest.Terminal)
	}{
		"killed while it starts":          {carricktest.Starting, (*carricktest.Terminal).Kill},
		"killed on its first screen":      {carricktest.Beginning, (*carricktest.Terminal).Kill},
		"interrupted while it starts":     {carricktest.Starting, (*carricktest.Terminal).Interrupt},
		"interrupted on its first screen": {carricktest.Beginning, (*carricktest.Terminal).Interrupt},
	} {
		cases.Run(t, "crash", name, func(t *testing.T) { leavesNothing(t, how.when, how.end) })
	}
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
