package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// A guide that is in the list is proved by faults and by crashes: its folder has
// the tests, and they call the machinery that all guides share.
func TestEveryGuideIsProvedByFaultsAndCrashes(t *testing.T) {
	all := guides()
	if len(all) == 0 {
		t.Fatal("there are no guides")
	}
	for _, g := range all {
		calls := map[string]bool{}
		paths, err := filepath.Glob("../../steps/" + g.Name + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				test, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(test, func(n ast.Node) bool {
					if call, ok := n.(*ast.SelectorExpr); ok {
						calls[test.Name.Name+"/"+call.Sel.Name] = true
					}
					return true
				})
			}
		}
		for _, want := range []string{"TestFaults/Faults", "TestCrashes/Crashes"} {
			if !calls[want] {
				t.Errorf("guide %s: no %s in its tests; see stepstest.Proof", g.Name, want)
			}
		}
	}
}
