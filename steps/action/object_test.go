package action

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/diff"
	"carrick/steps"
)

// While a plan is being confirmed, a rollout changes the status and the revision of a Deployment. These changes do not
// make the plan outdated.
func TestARolloutIsNoOtherPlan(t *testing.T) {
	deployment := func(image, revision string, generation int64) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"spec": map[string]any{"template": map[string]any{"image": image}},
		}}
		o.SetName("a")
		if revision != "" {
			o.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": revision})
			o.SetGeneration(generation)
			o.Object["status"] = map[string]any{"observedGeneration": generation, "unavailableReplicas": generation}
		}
		return o
	}
	hash := func(live *unstructured.Unstructured) string {
		want := deployment("new", "", 0)
		p := planned{Item: steps.Item{Verb: steps.Replace, What: "Deployment a", Diff: diff.Objects(live, want)}, want: want}
		return p.fingerprint()
	}
	if hash(deployment("old", "1", 1)) != hash(deployment("old", "2", 2)) {
		t.Error("a rollout makes the plan another one")
	}
	if hash(deployment("old", "1", 1)) == hash(deployment("older", "1", 1)) {
		t.Error("another image is the same plan")
	}
}
