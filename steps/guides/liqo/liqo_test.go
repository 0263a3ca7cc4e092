package liqo_test

import (
	"os"
	"testing"

	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

var assets = os.DirFS("../../../assets/liqo")

func TestStates(t *testing.T) {
	stepstest.Play(t, liqo.Guide(), assets, "testdata")
}
