package liqo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// Resources other than CPU and memory that an existing slice requests stay requested.
func TestASliceThatStandsKeepsItsResources(t *testing.T) {
	s := stepstest.Stand(t, liqo.Guide(), assets, "testdata", "provider-no-gpu")
	want := map[string]any{"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}
	objs, err := s.Render(t.Context(), "resource-slice")
	if err != nil || len(objs) != 1 {
		t.Fatalf("%d objects, %v", len(objs), err)
	}
	spec, _ := objs[0].Object["spec"].(map[string]any)
	if d := cmp.Diff(want, spec["resources"]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
