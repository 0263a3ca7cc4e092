package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Small files and small functions: nine of ten within the first figure, none
// above the second, in lines. Tests are left out.
var (
	fileLines     = [2]int{250, 400}
	functionLines = [2]int{40, 80}
)

func TestFilesAndFunctionsAreSmall(t *testing.T) {
	var files, functions []int
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		n := set.File(f.Pos()).LineCount()
		files = append(files, n)
		if n > fileLines[1] {
			t.Errorf("%s has %d lines; %d at most", path, n, fileLines[1])
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
			functions = append(functions, n)
			if n > functionLines[1] {
				t.Errorf("%s: func %s has %d lines; %d at most", path, fn.Name.Name, n, functionLines[1])
			}
		}
		return nil
	})
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, c := range []struct {
		what   string
		sizes  []int
		wanted int
	}{{"files", files, fileLines[0]}, {"functions", functions, functionLines[0]}} {
		slices.Sort(c.sizes)
		if most := c.sizes[len(c.sizes)*9/10]; most > c.wanted {
			t.Errorf("one of ten %s has over %d lines; %d is wanted", c.what, most, c.wanted)
		}
	}
}
