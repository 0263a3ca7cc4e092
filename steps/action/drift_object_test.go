package action

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// For a difference in a list element the finding has both values. Image names can be longer than other values.
func TestDriftInLists(t *testing.T) {
	t.Parallel()
	const image = "registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0."
	deployment := func(image string, variables ...any) *unstructured.Unstructured {
		container := map[string]any{"name": "main", "image": image, "env": variables}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"spec": map[string]any{"containers": []any{container}},
		}}
	}
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	const long = "a value of more than forty characters, as keys and tokens are"
	live := deployment(image+"1", variable("A", "1"), variable("B", "2"), variable("T", long))
	kept := deployment(image+"2", variable("A", "3"), variable("T", long+"!"))
	want := []string{
		"spec.containers[0].env[A].value is 1 instead of 3",
		"spec.containers[0].env[B] was added",
		"spec.containers[0].env[T].value",
		"spec.containers[0].image is " + image + "1 instead of " + image + "2",
	}
	if got := changedFields(kept, live, kept, true); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	live.SetAPIVersion("v1")
	live.SetKind("Secret")
	for _, field := range changedFields(live, live, kept, true) {
		if strings.Contains(field, " instead of ") {
			t.Errorf("values of a Secret: %s", field)
		}
	}
}

// A missing list element is drift even if carrick did not create the object.
func TestDriftOfAMissingElement(t *testing.T) {
	t.Parallel()
	of := func(names ...string) *unstructured.Unstructured {
		var all []any
		for _, name := range names {
			all = append(all, map[string]any{"name": name, "value": "1"})
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing", "env": all}}
	}
	live, kept := of("B", "C", "D"), of("A", "C")
	want := []string{"env[A] is missing", "env[B] was added", "env[D] was added"}
	for _, whole := range []bool{true, false} {
		if got := changedFields(kept, live, kept, whole); !slices.Equal(got, want) {
			t.Errorf("whole %v: got %q, want %q", whole, got, want)
		}
	}
}
