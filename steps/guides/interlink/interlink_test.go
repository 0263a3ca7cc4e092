package interlink_test

import (
	"os"
	"testing"

	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

var assets = os.DirFS("../../../assets/interlink")

// The machine of the states trusts one public authority.
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
