package ondemand_test

import (
	"os"
	"testing"

	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

var assets = os.DirFS("../../../assets/ondemand")

func TestStates(t *testing.T) {
	stepstest.Play(t, ondemand.Guide(), assets, "testdata")
}
