package renku_test

import (
	"os"
	"testing"

	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

func TestStates(t *testing.T) {
	stepstest.Play(t, renku.Guide(), os.DirFS("../../../assets/renku"), "testdata")
}
