package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"carrick/ui"
)

// updates tells whether goldens are written anew: the flag is that of package
// stepstest.
func updates() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// The README's keys are those of the one table that also makes the footer and
// the help.
func TestReadmeKeysAreTheTable(t *testing.T) {
	const path, head, tail = "../../README.md", "## Keys\n\n", "\n## Commands"
	text, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(text, head)
	table, _, ok2 := strings.Cut(rest, tail)
	if !ok || !ok2 {
		t.Fatal("the README has no section Keys before Commands")
	}
	if table == ui.KeyTable() {
		return
	}
	if !updates() {
		t.Fatalf("the README's keys differ from the program's:\n%s\n(go test ./cmd/carrick -run Readme -update)", ui.KeyTable())
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, head+table, head+ui.KeyTable(), 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
