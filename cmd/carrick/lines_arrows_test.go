package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The line-based wizard depends on the engine and not on a screen.
func TestLinesNeedNoScreen(t *testing.T) {
	ours := []string{
		"carrick/steps", "carrick/steps/engine", "carrick/steps/action", "carrick/steps/linkfile", "carrick/cluster",
		"carrick/cluster/clean", "carrick/cluster/failure", "carrick/cluster/masked", "carrick/ui/farewell",
		"carrick/ui/model", "golang.org/x/term",
	}
	paths, err := filepath.Glob("../../ui/lines/*.go")
	more, _ := filepath.Glob("../../ui/model/*.go")
	paths = append(paths, more...)
	if err != nil || len(more) == 0 || len(paths) == len(more) {
		t.Fatalf("looked at nothing: %v", err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			standard := !strings.Contains(name, ".") && !strings.HasPrefix(name, "carrick/")
			if !standard && !slices.Contains(ours, name) {
				t.Errorf("%s imports %s", path, name)
			}
		}
	}
}
