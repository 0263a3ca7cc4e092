package renku_test

import (
	"testing"

	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

func TestChain(t *testing.T) { stepstest.Chain(t, renku.Guide(), assets, "testdata") }
