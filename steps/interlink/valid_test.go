package interlink_test

import (
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/interlink"
	"os"
	"testing"
)

func TestValid(t *testing.T) {
	if err := engine.Validate([]*steps.Guide{interlink.Guide()}, os.DirFS("../../assets")); err != nil {
		t.Error(err)
	}
}
