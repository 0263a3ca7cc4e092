package interlink_test

import (
	"slices"
	"testing"

	"carrick/steps/interlink"
	"carrick/steps/stepstest"
)

// TestRows proves that every row of what upstream needs is looked at.
func TestRows(t *testing.T) {
	stepstest.Rows(t, interlink.Guide(), "testdata", 32, slices.Concat(rowsA, rowsB))
}
