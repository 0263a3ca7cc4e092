package liqo_test

import (
	"testing"

	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

func TestChain(t *testing.T) { stepstest.Chain(t, liqo.Guide(), assets, "testdata") }
