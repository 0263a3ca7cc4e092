package interlink_test

import (
	"os"
	"testing"

	"carrick/steps/interlink"
	"carrick/steps/stepstest"
)

var assets = os.DirFS("../../assets/interlink")

func TestStates(t *testing.T) {
	stepstest.Play(t, interlink.Guide(), assets, "testdata")
}
