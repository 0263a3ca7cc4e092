package interlink_test

import (
	"os"
	"testing"

	"carrick/steps"
	"carrick/steps/interlink"
)

func TestValid(t *testing.T) {
	if err := steps.Validate([]*steps.Guide{interlink.Guide()}, os.DirFS("../../assets")); err != nil {
		t.Error(err)
	}
}
