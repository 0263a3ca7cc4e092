package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"carrick/cluster/masked"
	"carrick/steps"
)

// unchanged returns the verdict of the drift check for a step with one file.
func (m *machine) unchanged() steps.Result {
	m.t.Helper()
	step := &steps.Step{Name: "one", Actions: []steps.Action{{Name: "a", On: steps.Local, Doer: m.file}}}
	m.env.Side = steps.Local
	return lookForDrift(m.t.Context(), m.env, step)
}

func TestDriftOfAFile(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	want := func(status steps.Status, words string) {
		t.Helper()
		if r := m.unchanged(); r.Status != status || !strings.Contains(r.Found+" "+r.Fix, words) {
			t.Errorf("want %v with %q, got %v: %s; %s", status, words, r.Status, r.Found, r.Fix)
		}
	}
	m.write("/etc/x", "theirs", 0o644)
	want(steps.Skip, "exists yet") // what another user wrote is for the checks
	m.do()
	want(steps.Pass, "the only item is unchanged")
	for _, c := range []struct {
		change func(path string) error
		status steps.Status
		words  string
	}{
		{func(path string) error { return os.WriteFile(path, []byte("changed"), 0o600) }, steps.Warn, "/etc/x was changed"},
		{func(path string) error { return os.WriteFile(path, []byte("changed"), 0o600) }, steps.Warn, "--take-over"},
		{func(path string) error { return os.Chmod(path, 0o666) }, steps.Warn, "has mode 0666 instead of 0600"},
		{os.Remove, steps.Fail, "/etc/x is gone"},
	} {
		path := filepath.Join(m.root, "/etc/x")
		if err := c.change(path); err != nil {
			t.Fatal(err)
		}
		want(c.status, c.words)
		m.env.Apply.TakeOver = true
		m.do()
		want(steps.Pass, "the only item is unchanged")
	}
	m.file.Content = func(context.Context, steps.Env) (masked.Value, error) { return masked.New("another answer"), nil }
	want(steps.Warn, "/etc/x was changed")
	m.file.Content = func(context.Context, steps.Env) (masked.Value, error) { return masked.Value{}, os.ErrPermission }
	want(steps.Unknown, "permission")
}

// validationActions is a set: server-side apply merges [Warn] with [Deny], and the API server rejects this combination.
func TestDriftOfASetThatCannotBeMerged(t *testing.T) {
	t.Parallel()
	binding := func(action string, more ...any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
			"metadata": map[string]any{"name": "x"},
			"spec":     map[string]any{"policyName": "x", "validationActions": append([]any{action}, more...)},
		}}
		return o
	}
	live := binding("Warn")
	live.Object["spec"].(map[string]any)["matchResources"] = map[string]any{"matchPolicy": "Equivalent"}
	want := []string{"spec.validationActions[0] is Warn instead of Deny"}
	if got := sentFields(binding("Deny"), live); !slices.Equal(got, want) {
		t.Errorf("the fields are %q, want %q", got, want)
	}
	longer := sentFields(binding("Deny"), binding("Warn", "Audit"))
	if !slices.Equal(longer, []string{"spec.validationActions"}) {
		t.Errorf("of a longer set the fields are %q", longer)
	}
	both := field.Invalid(field.NewPath("spec", "validationActions"), []string{"Warn", "Deny"},
		"must not contain both Deny and Warn")
	kind := schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}
	if err := apierrors.NewInvalid(kind, "x", field.ErrorList{both}); byAdmissionPolicy(err) {
		t.Errorf("%v: it is taken for the refusal of a policy", err)
	}
	denied := errors.New("services \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no")
	if !byAdmissionPolicy(denied) {
		t.Errorf("%v: it is not taken for the refusal of a policy", denied)
	}
}
