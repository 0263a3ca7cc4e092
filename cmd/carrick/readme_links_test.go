package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mostLines is the maximum number of lines of the main README.
const mostLines = 200

var (
	fenced      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	linkTarget  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`) // what GitHub drops from an anchor
)

// The main README is short. Every relative link in a README leads to an existing file and heading.
func TestReadmes(t *testing.T) {
	texts := map[string]string{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == "bin" || d.Name() == ".git" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || d.Name() != "README.md" {
			return nil
		}
		b, err := fs.ReadFile(root, name)
		texts[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(texts["README.md"], "\n"); lines == 0 || lines > mostLines {
		t.Errorf("README.md has %d lines, want 1 to %d: move details into the README of their folder", lines, mostLines)
	}
	links := 0
	for name, text := range texts {
		for _, m := range linkTarget.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			links++
			at := path.Join(path.Dir(name), target)
			if target == "" {
				at = name
			}
			if _, err := os.Stat(filepath.Join("../..", filepath.FromSlash(at))); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
				continue
			}
			if anchor != "" && !anchors(texts[at])[anchor] {
				t.Errorf("%s links to %s, but %s has no such heading", name, m[1], at)
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links were checked", links)
	}
}

// anchors returns the anchors of a text's headings, as GitHub derives them.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		out[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}
