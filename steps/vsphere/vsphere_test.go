package vsphere_test

import (
	"os"
	"testing"

	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

var assets = os.DirFS("../../assets/vsphere")

func TestStates(t *testing.T) {
	stepstest.Play(t, vsphere.Guide(), assets, "testdata")
}
