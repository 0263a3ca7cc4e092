package vsphere_test

import (
	"os"
	"testing"

	"carrick/steps"
	"carrick/steps/vsphere"
)

func TestValid(t *testing.T) {
	if err := steps.Validate([]*steps.Guide{vsphere.Guide()}, os.DirFS("../../assets")); err != nil {
		t.Error(err)
	}
}
