package interlink_test

import (
	"slices"
	"testing"

	"carrick/steps/interlink"
	"carrick/steps/stepstest"
)

// TestRows proves that every row of what upstream needs is looked at.
func TestRows(t *testing.T) {
	rows := slices.Concat(rowsA, rowsB)
	slices.SortStableFunc(rows, func(a, b stepstest.Row) int { return a.Number - b.Number })
	stepstest.Rows(t, interlink.Guide(), "testdata", 32, rows)
}
