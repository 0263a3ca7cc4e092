package vsphere_test

import (
	"testing"

	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// example contains the answers with which every asset is rendered.
var example = map[string]any{
	"claim.pods": true, "mutation.method": "webhook", "extension.image": "registry.example.org/carrick:v1",
}

func TestGolden(t *testing.T) {
	stepstest.Golden(t, vsphere.Guide(), assets, "testdata", example)
}
