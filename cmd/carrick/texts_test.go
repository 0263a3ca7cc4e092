package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"carrick/cmd/carrick/guides"
)

// Maximum length, in characters, of a check's title, which is a row of the screen, and of its reason.
const (
	mostTitle  = 60
	mostReason = 160
)

func TestTitlesAndReasonsAreShort(t *testing.T) {
	checks := 0
	for _, g := range guides.All() {
		for _, s := range g.Steps {
			for _, c := range s.Checks {
				checks++
				if n := utf8.RuneCountInString(c.Title); n > mostTitle || strings.HasSuffix(c.Title, ".") {
					t.Errorf("%s/%s: title of %d characters: %s", g.Name, c.Name, n, c.Title)
				}
				if n := utf8.RuneCountInString(c.Why); n > mostReason || !strings.HasSuffix(c.Why, ".") {
					t.Errorf("%s/%s: reason of %d characters, or without a full stop: %s", g.Name, c.Name, n, c.Why)
				}
			}
		}
	}
	if checks < 300 {
		t.Errorf("%d checks: this proves nothing", checks)
	}
}

// odd matches phrases that must not occur in carrick's texts, because each has a plainer synonym.
var odd = regexp.MustCompile(`(?i)\b(nobody|somebody|anew|for ever|looked at|looks whether|looking whether|` +
	`what stands|stands there|by itself|tells whether|(take|takes|taken|took|taking) back|says nothing before|` +
	`is to be had|rights are missing|files? of facts|what shall|fences?|fenced)\b`)

func TestTextsAreInPlainWords(t *testing.T) {
	texts := 0
	for _, root := range []string{"../../cmd", "../../ui", "../../steps", "../../cluster"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				l, ok := n.(*ast.BasicLit)
				if !ok || l.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(l.Value)
				if err != nil || !strings.Contains(text, " ") {
					return true
				}
				texts++
				if found := odd.FindString(strings.ReplaceAll(text, "nobody:nogroup", "")); found != "" { // a user and its group
					t.Errorf("%s: %q in %q", files.Position(l.Pos()), found, text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if texts < 5000 {
		t.Errorf("%d texts: this proves nothing", texts)
	}
}
