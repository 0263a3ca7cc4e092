package interlink_test

import (
	"testing"

	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// example contains answers with which every asset of the cluster is rendered.
var example = map[string]any{"workload.argo": true}

func TestGolden(t *testing.T) {
	stepstest.Golden(t, interlink.Guide(), assets, "testdata", example)
}
