package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"carrick/ui"
)

// updates reports whether goldens are rewritten: the flag is that of package stepstest.
func updates() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// The keys of the README are those of the one table that also makes the footer and the overlay.
func TestReadmeKeysAreTheTable(t *testing.T) {
	const path, head, tail = "../../" + keysReadme, "## Keys\n\n", "\n## "
	text, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(text, head)
	table, _, ok2 := strings.Cut(rest, tail)
	if !ok || !ok2 {
		t.Fatalf("%s has no section Keys before another one", keysReadme)
	}
	if table == ui.KeyTable() {
		return
	}
	if !updates() {
		t.Fatalf("the keys of %s differ from the program's:\n%s\n(go test ./cmd/carrick -run Readme -update)", keysReadme, ui.KeyTable())
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, head+table, head+ui.KeyTable(), 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
