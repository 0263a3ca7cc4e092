package stepstest

import (
	"maps"
	"slices"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
)

// Live tries each name on real control planes as a case of a kind, with a sandbox of its own. The test that calls it
// and its cases run in parallel.
func Live(t *testing.T, kind string, names []string, try func(t *testing.T, box *clustertest.Sandbox, name string)) {
	t.Helper()
	t.Parallel()
	if len(names) == 0 {
		t.Fatal("there is nothing to try")
	}
	for _, name := range names {
		cases.Run(t, kind, name, func(t *testing.T) {
			t.Parallel()
			try(t, clustertest.Start(t), name)
		})
	}
}

// Except returns the names of a table, sorted, without some of them: make test tries these, make verify the rest.
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
