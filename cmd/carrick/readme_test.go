package main

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/guides"
	"carrick/cmd/carrick/help"
	"carrick/steps"
	"carrick/ui"
)

var update = flag.Bool("update", false, "rewrite the table of keys")

// The README lists exactly the keys of the table from which the footer and the overlay are generated.
func TestReadmeKeysAreTheTable(t *testing.T) {
	const path, head, tail = "../../ui/README.md", "## Keys\n\n", "\n## "
	text, err := carricktest.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(text, head)
	table, _, ok2 := strings.Cut(rest, tail)
	if !ok || !ok2 {
		t.Fatalf("%s has no section Keys before another one", path)
	}
	if table == ui.KeyTable() {
		return
	}
	if !*update {
		t.Fatalf("the keys of %s differ from the program's:\n%s\n(go test ./cmd/carrick -run Readme -update)",
			path, ui.KeyTable())
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, head+table, head+ui.KeyTable(), 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A guide's README is a help topic. A guide without a README has no topic.
func TestReadmesOfGuidesAreTopics(t *testing.T) {
	for _, g := range guides.All() {
		text, err := carricktest.ReadFile("../../steps/guides/" + g.Name + "/README.md")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if g.Readme != text {
			t.Errorf("guide %s: Readme is not the README in its folder", g.Name)
		}
	}
	p := commands.Program{Guides: []*steps.Guide{{Name: "one", Readme: "# One\n\nSome `text`.\n"}, {Name: "two"}}}
	if got := help.Names(
		help.Child(commands.Root(p, nil, io.Discard, io.Discard), "help"),
	); !slices.Equal(got, []string{"one"}) {
		t.Errorf("carrick help has the guides %q, want only the one with a README", got)
	}
	var shown strings.Builder
	commands.Run(t.Context(), p, []string{"carrick", "help", "one"}, strings.NewReader(""), &shown, &shown)
	if got, want := shown.String(), "Some text.\n"; got != want {
		t.Errorf("carrick help one prints %q, want %q", got, want)
	}
}
