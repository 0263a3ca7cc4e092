package interlink_test

import (
	"os"
	"testing"

	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

var assets = os.DirFS("../../../assets/interlink")

// TestMain makes the tests trust one public CA, as the machine of the recorded states does.
func TestMain(m *testing.M) {
	remove, err := stepstest.TrustPublic()
	if err != nil {
		panic(err)
	}
	code := m.Run()
	remove()
	os.Exit(code)
}

func TestStates(t *testing.T) {
	stepstest.Play(t, interlink.Guide(), assets, "testdata")
}
