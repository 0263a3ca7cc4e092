package vsphere_test

import (
	"os"
	"testing"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/vsphere"
)

func TestValid(t *testing.T) {
	if err := engine.Validate([]*steps.Guide{vsphere.Guide()}, os.DirFS("../../../assets")); err != nil {
		t.Error(err)
	}
}
