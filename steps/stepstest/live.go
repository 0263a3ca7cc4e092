package stepstest

import (
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
)

// Live calls try for each name as a subtest with its own sandbox, on real control planes. The calling test and its
// subtests run in parallel.
func Live(t *testing.T, kind string, names []string, try func(t *testing.T, box *clustertest.Sandbox, name string)) {
	t.Helper()
	t.Parallel()
	each(t, kind, names, try)
}

func each(t *testing.T, kind string, names []string, try func(t *testing.T, box *clustertest.Sandbox, name string)) {
	t.Helper()
	cases.LeftOutHere(t, kind)
	if len(names) == 0 {
		t.Fatal("the guide has no live tests")
	}
	for _, name := range names {
		cases.Run(t, kind, name, func(t *testing.T) {
			t.Parallel()
			try(t, clustertest.Start(t), name)
		})
	}
}

// FirstCycle runs a guide's cycle of make test. It fails the test if the cycle does not undo an action of the guide.
// The actions in elsewhere are exempt, because another test undoes them or they have nothing to undo.
func FirstCycle(t *testing.T, g *steps.Guide, name string, elsewhere []string, one func(*testing.T, string) []string) {
	t.Helper()
	t.Parallel()
	done := one(t, name)
	for _, step := range g.Steps {
		for _, a := range step.Actions {
			switch undone, listed := slices.Contains(done, a.Name), slices.Contains(elsewhere, a.Name); {
			case !undone && !listed:
				t.Errorf("no cycle undoes action %s of step %s", a.Name, step.Name)
			case undone && listed:
				t.Errorf("the cycle undoes action %s of step %s, so it must not be listed", a.Name, step.Name)
			}
		}
	}
}

// OtherCycles runs cycles of make verify, also in a brief run. It fails the test if they do not undo the given actions.
func OtherCycles(t *testing.T, names, actions []string, one func(*testing.T, string) []string) {
	t.Helper()
	t.Parallel()
	var mu sync.Mutex
	var done []string
	t.Run("ways", func(t *testing.T) { // returns when all have ended
		for _, name := range names {
			cases.Run(t, "cycle", name, func(t *testing.T) {
				t.Parallel()
				did := one(t, name)
				mu.Lock()
				defer mu.Unlock()
				done = append(done, did...)
			})
		}
	})
	if os.Getenv(clustertest.Program) == "" || cases.Partial(t) {
		return // cycles were skipped
	}
	for _, name := range actions {
		if !slices.Contains(done, name) {
			t.Errorf("no cycle undoes action %s", name)
		}
	}
}

// Except returns the sorted names of a table without the names in without, which run elsewhere.
func Except[V any](table map[string]V, without []string) []string {
	for _, name := range without {
		if _, ok := table[name]; !ok {
			panic("the table has no " + name)
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(table)), func(name string) bool {
		return slices.Contains(without, name)
	})
}
