package interlink_test

import (
	"os"
	"testing"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/interlink"
)

func TestValid(t *testing.T) {
	if err := engine.Validate([]*steps.Guide{interlink.Guide()}, os.DirFS("../../../assets")); err != nil {
		t.Error(err)
	}
}
