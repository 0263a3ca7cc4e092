package interlink_test

import (
	"testing"

	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

func TestChain(t *testing.T) { stepstest.Chain(t, interlink.Guide(), assets, "testdata") }
