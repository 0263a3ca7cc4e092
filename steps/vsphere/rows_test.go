package vsphere_test

import (
	"slices"
	"testing"

	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

// rowLists are the rows by who looks at them: see rows_*_test.go.
var rowLists = [][]stepstest.Row{rowsA, rowsC, rowsD}

// TestRows proves that every row of what upstream needs is looked at.
func TestRows(t *testing.T) {
	var rows []stepstest.Row
	for _, list := range rowLists {
		for _, r := range list { // a row may be looked at by several
			if i := slices.IndexFunc(rows, func(other stepstest.Row) bool { return other.Number == r.Number }); i >= 0 {
				rows[i].Checks = slices.Concat(rows[i].Checks, r.Checks)
				continue
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b stepstest.Row) int { return a.Number - b.Number })
	stepstest.Rows(t, vsphere.Guide(), "testdata", 34, rows)
}
