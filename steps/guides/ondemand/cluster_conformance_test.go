package ondemand_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// example are answers with which every asset of the cluster is rendered.
var example = map[string]any{"trial.enabled": true}

func TestGolden(t *testing.T) {
	stepstest.Golden(t, ondemand.Guide(), assets, "testdata", example)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	stepstest.Conformance(t, box, ondemand.Guide(), assets, "testdata", example)
}
