package vsphere_test

import (
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/vsphere"
	"os"
	"testing"
)

func TestValid(t *testing.T) {
	if err := engine.Validate([]*steps.Guide{vsphere.Guide()}, os.DirFS("../../assets")); err != nil {
		t.Error(err)
	}
}
