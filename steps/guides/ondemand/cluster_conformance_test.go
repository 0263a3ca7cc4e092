package ondemand_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// example contains the answers with which Golden and Conformance render every asset of the cluster.
var example = map[string]any{"trial.enabled": true}

func TestGolden(t *testing.T) {
	stepstest.Golden(t, ondemand.Guide(), assets, "testdata", example)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	stepstest.Conformance(t, box, ondemand.Guide(), assets, "testdata", example)
}
