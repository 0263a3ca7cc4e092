package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

// object is a ConfigMap with those data, as an action gives it.
func object(action string, data map[string]any) steps.ExportedAction {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": data}}
	return steps.ExportedAction{Action: action, Side: steps.Local, Things: []steps.Exported{{Object: o}}}
}

// A kustomization takes no object twice.
func TestAnObjectOfTwoActionsStandsOnce(t *testing.T) {
	e := &steps.Export{Actions: []steps.ExportedAction{object("one", map[string]any{"a": "1", "b": "2"}), object("two", map[string]any{"b": "2", "c": "3"})}}
	got, err := manifests(e, steps.Local)
	if err != nil || len(got) != 1 || len(got["one.yaml"]) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if text := string(got["one.yaml"][0]); !strings.Contains(text, "a: \"1\"\n  b: \"2\"\n  c: \"3\"\n") {
		t.Errorf("it says:\n%s", text)
	}
	e.Actions[1] = object("two", map[string]any{"b": "other"})
	if _, err := manifests(e, steps.Local); err == nil || !strings.Contains(err.Error(), "actions one and two: they disagree on data.b") {
		t.Errorf("got %v", err)
	}
	if got, err := manifests(e, steps.Remote); err != nil || len(got) != 0 {
		t.Errorf("the other side: %v, %v", got, err)
	}
}

// What fails half-way leaves the folder as it was.
func TestAnExportThatFailsHalfWay(t *testing.T) {
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
		if err := writeAt(path, exportFile{[]byte(text), 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	err = swap(dir, made, filepath.Join(other, "old"))
	if err == nil || errors.As(err, new(*notRestored)) {
		t.Fatalf("got %v", err)
	}
	if text, _ := readFile(filepath.Join(dir, "files/a")); text != "old" {
		t.Errorf("files/a holds %q", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "local")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("local is there: %v", err)
	}
}
