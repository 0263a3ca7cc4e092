package carricktest

import (
	"os"
	"testing"

	"carrick/steps"
	"carrick/steps/engine"
)

func TestTheGuideForTwoIsValid(t *testing.T) {
	if err := engine.Validate([]*steps.Guide{Duo(), twin()}, os.DirFS(t.TempDir())); err != nil {
		t.Error(err)
	}
}
