package ondemand_test

import (
	"testing"

	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

func TestChain(t *testing.T) { stepstest.Chain(t, ondemand.Guide(), assets, "testdata") }
