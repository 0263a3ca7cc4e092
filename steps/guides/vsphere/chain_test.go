package vsphere_test

import (
	"testing"

	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

func TestChain(t *testing.T) { stepstest.Chain(t, vsphere.Guide(), assets, "testdata") }
