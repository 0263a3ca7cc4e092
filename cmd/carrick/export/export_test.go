package export

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

// object returns an exported action with one ConfigMap that has this data.
func object(name string, data map[string]any) engine.ExportedAction {
	o := &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": data,
		},
	}
	return engine.ExportedAction{Action: name, Side: steps.Local, Things: []action.Exported{{Object: o}}}
}

// A kustomization rejects duplicate objects, so an object of two actions is exported once.
func TestAnObjectOfTwoActionsStandsOnce(t *testing.T) {
	t.Parallel()
	e := &engine.Export{
		Actions: []engine.ExportedAction{
			object("one", map[string]any{"a": "1", "b": "2"}), object("two", map[string]any{"b": "2", "c": "3"}),
		},
	}
	got, err := manifests(e, steps.Local)
	if err != nil || len(got) != 1 || len(got["one.yaml"]) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if text := string(got["one.yaml"][0]); !strings.Contains(text, "a: \"1\"\n  b: \"2\"\n  c: \"3\"\n") {
		t.Errorf("it says:\n%s", text)
	}
	e.Actions[1] = object("two", map[string]any{"b": "other"})
	if _, err := manifests(e, steps.Local); err == nil ||
		!strings.Contains(err.Error(), "actions one and two: they disagree on data.b") {
		t.Errorf("got %v", err)
	}
	if got, err := manifests(e, steps.Remote); err != nil || len(got) != 0 {
		t.Errorf("the other side: %v, %v", got, err)
	}
}

func exportedObject(name string, side steps.Side, o map[string]any) engine.ExportedAction {
	return engine.ExportedAction{
		Action: name, Side: side, Things: []action.Exported{{Object: &unstructured.Unstructured{Object: o}}},
	}
}

// CustomResourceDefinitions get a separate file. They are applied first if the export contains objects of their kind.
func TestDefinitionsStandApart(t *testing.T) {
	t.Parallel()
	crd := exportedObject("op", steps.Remote, map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": crdKind, "metadata": map[string]any{"name": "ws.example.org"},
		"spec": map[string]any{"group": "example.org", "names": map[string]any{"kind": "W"}},
	})
	e := &engine.Export{Actions: []engine.ExportedAction{crd}}
	got, err := manifests(e, steps.Remote)
	if err != nil || len(got) != 1 || len(got["op.crds.yaml"]) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	r := &instructions{e: e}
	if first := r.before(steps.Remote); len(first) > 0 {
		t.Errorf("nothing needs it, and %v is applied first", first)
	}
	e.Actions = append(
		e.Actions,
		exportedObject(
			"w", steps.Remote,
			map[string]any{"apiVersion": "example.org/v1", "kind": "W", "metadata": map[string]any{"name": "x"}},
		),
	)
	if first := r.before(steps.Remote); len(first) != 1 || first[0] != "op.crds.yaml" {
		t.Errorf("%v is applied first", first)
	}
	if first := r.before(steps.Local); len(first) > 0 {
		t.Errorf("on the other side %v", first)
	}
	space := [][]byte{[]byte("apiVersion: v1\nkind: Namespace\n")}
	if a, b, c := rank(space, "a.yaml"), rank(got["op.crds.yaml"], "op.crds.yaml"), rank(nil, "w.yaml"); a >= b || b >= c {
		t.Errorf("ranks %d, %d, %d", a, b, c)
	}
}

// A dry run requires the namespaces of the exported objects, including namespaces that the export itself contains.
func TestNamespacesOfADryRun(t *testing.T) {
	t.Parallel()
	r := &instructions{e: &engine.Export{Actions: []engine.ExportedAction{
		exportedObject("a", steps.Local, map[string]any{"kind": "Namespace", "metadata": map[string]any{"name": "made"}}),
		exportedObject(
			"b", steps.Local, map[string]any{"kind": "Ingress", "metadata": map[string]any{"name": "x", "namespace": "made"}},
		),
		exportedObject(
			"c", steps.Remote, map[string]any{"kind": "Ingress", "metadata": map[string]any{"name": "x", "namespace": "edge"}},
		),
		exportedObject("d", steps.Remote, map[string]any{"kind": "ClusterRole", "metadata": map[string]any{"name": "x"}}),
	}}}
	if got := strings.Join(r.namespaces(), " "); got != "edge made" {
		t.Errorf("got %q", got)
	}
}

// If an export fails half-way, the folder is unchanged.
func TestAnExportThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	other, err := os.MkdirTemp("/dev/shm", "carrick-*") // another file system: nothing can be moved there
	if err != nil {
		t.Skipf("no second file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	dir, made := t.TempDir(), t.TempDir()
	if os.Rename(dir, filepath.Join(other, "x")) == nil {
		t.Skip("/dev/shm is no file system of its own")
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "files/a"): "old", filepath.Join(made, "files/a"): "new", filepath.Join(made, "local/a"): "new",
	} {
		if err := writeAt(path, file{[]byte(text), 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	err = swap(dir, made, filepath.Join(other, "old"))
	if err == nil || errors.As(err, new(*notRestored)) {
		t.Fatalf("got %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "files/a")); string(text) != "old" {
		t.Errorf("files/a holds %q", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "local")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("local is there: %v", err)
	}
}
