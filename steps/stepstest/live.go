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

// Cycles runs one cycle for each name, as Live does. It fails the test if no cycle undoes an action of the guide. The
// actions in elsewhere are exempt, because another test undoes them or they have nothing to undo.
func Cycles(t *testing.T, g *steps.Guide, names, elsewhere []string, one func(t *testing.T, name string) []string) {
	t.Helper()
	var mu sync.Mutex
	done := map[string]bool{}
	t.Run("ways", func(t *testing.T) { // returns when all have ended
		each(t, "cycle", names, func(t *testing.T, _ *clustertest.Sandbox, name string) {
			did := one(t, name)
			mu.Lock()
			defer mu.Unlock()
			for _, action := range did {
				done[action] = true
			}
		})
	})
	if os.Getenv(clustertest.Program) == "" {
		return // the cycles were skipped
	}
	for _, step := range g.Steps {
		for _, a := range step.Actions {
			switch listed := slices.Contains(elsewhere, a.Name); {
			case !done[a.Name] && !listed:
				t.Errorf("no cycle undoes action %s of step %s", a.Name, step.Name)
			case done[a.Name] && listed:
				t.Errorf("a cycle undoes action %s of step %s, so it must not be listed", a.Name, step.Name)
			}
		}
	}
}

// Except returns the sorted names of a table without the names in without. make test covers the returned names, and
// make verify covers the others.
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
