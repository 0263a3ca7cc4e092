package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carrick/steps"
)

const readmePath = "../../README.md"

// commandTree is the whole tree of commands, as it is when it runs.
func commandTree(t *testing.T) *cobra.Command {
	t.Helper()
	a := &app{in: strings.NewReader(""), out: io.Discard, tty: io.Discard, err: io.Discard, name: "carrick", guides: guides()}
	return a.root()
}

// every are the commands of a tree that are no topics.
func every(root *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if !c.Hidden && !c.IsAdditionalHelpTopicCommand() {
			out = append(out, c)
		}
	}
	return out
}

// section is what stands under a head of the README.
func section(t *testing.T, head string) string {
	t.Helper()
	text, err := readFile(readmePath)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(text, "\n"+head+"\n")
	if !ok {
		t.Fatalf("the README has no section %s", head)
	}
	if next := regexp.MustCompile(`(?m)^##`).FindStringIndex(rest); next != nil {
		rest = rest[:next[0]]
	}
	return rest
}

// The README's tables of exit codes and of the environment are the program's.
func TestReadmeTablesAreTheProgram(t *testing.T) {
	for head, want := range map[string]string{
		"### Exit codes": markdown("code", exitRows()), "### Environment": markdown("variable", environment),
	} {
		text := section(t, head)
		if strings.Contains(text, want) {
			continue
		}
		old := regexp.MustCompile(`(?m)(^\|.*\n)+`).FindString(text)
		if !updates() || old == "" {
			t.Errorf("%s of the README differs from the program's:\n%s(go test ./cmd/carrick -run ReadmeTables -update)", head, want)
			continue
		}
		whole, err := readFile(readmePath)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(readmePath, []byte(strings.Replace(whole, old, want, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	commandCell = regexp.MustCompile("(?m)^\\| `(carrick[^`]*)` \\| ([^|]*) \\|(.*)\\|$")
	flagName    = regexp.MustCompile("`--?([a-z][-a-z]*)")
	escaped     = strings.NewReplacer(`\|`, "/")
)

// The README's table of commands names every command, each with every flag of
// its own, and none that there is not.
func TestReadmeNamesEveryCommandAndFlag(t *testing.T) {
	root := commandTree(t)
	listed := map[string][]string{}
	for _, m := range commandCell.FindAllStringSubmatch(escaped.Replace(section(t, "## Commands")), -1) {
		words := strings.Fields(m[1])
		name := "carrick"
		if len(words) > 1 && words[1] == strings.ToLower(words[1]) && !strings.HasPrefix(words[1], "[") {
			name = words[1]
		}
		listed[name] = []string{}
		for _, f := range flagName.FindAllStringSubmatch(m[3], -1) {
			listed[name] = append(listed[name], f[1])
		}
	}
	for _, c := range every(root) {
		flags, ok := listed[c.Name()]
		delete(listed, c.Name())
		if !ok {
			t.Errorf("the README's table has no command %s", c.CommandPath())
			continue
		}
		for _, f := range ownFlags(c) {
			if !slices.Contains(flags, f.Name) && (f.Shorthand == "" || !slices.Contains(flags, f.Shorthand)) {
				t.Errorf("the README's table does not give --%s to %s", f.Name, c.CommandPath())
			}
		}
		for _, name := range flags {
			if c.Flags().Lookup(name) == nil && (len(name) != 1 || c.Flags().ShorthandLookup(name) == nil) {
				t.Errorf("the README's table gives --%s to %s, which has no such flag", name, c.CommandPath())
			}
		}
	}
	for name := range listed {
		t.Errorf("the README's table has a command %s, which there is not", name)
	}
	text := section(t, "## Commands")
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.HasPrefix(f.Name, remote) && !strings.Contains(text, "`--"+f.Name) {
			t.Errorf("the README does not name --%s, which all commands have", f.Name)
		}
	})
}

func ownFlags(c *cobra.Command) []*pflag.Flag {
	var out []*pflag.Flag
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			out = append(out, f)
		}
	})
	return out
}

// A stranger finds every command under a heading, with a sentence, an example
// and help that fits on a terminal.
func TestHelpIsWhole(t *testing.T) {
	root := commandTree(t)
	seen := 0
	for _, c := range append(every(root), root.Commands()...) {
		var said bytes.Buffer
		root.SetOut(&said)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(said.String(), "\n") {
			if runes(line) > screenColumns && c.Name() != "link-schema" {
				t.Errorf("%s: a line of its help is %d wide: %s", c.Name(), runes(line), line)
			}
		}
		seen++
		if c.IsAdditionalHelpTopicCommand() || c.Hidden {
			continue
		}
		if c != root && c.GroupID == "" {
			t.Errorf("%s stands in no group", c.Name())
		}
		if c.Short == "" || !strings.Contains(c.Example, "carrick") {
			t.Errorf("%s has no sentence or no example", c.Name())
		}
		for _, f := range ownFlags(c) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no sentence", c.Name(), f.Name)
			}
		}
	}
	if seen < 10 {
		t.Fatalf("only %d commands were looked at", seen)
	}
}

// What every example calls is a command, and its flags are that command's.
func TestExamplesAreRight(t *testing.T) {
	for _, c := range every(commandTree(t)) {
		for _, m := range regexp.MustCompile(`(?m)^  carrick(.*)$`).FindAllStringSubmatch(c.Example, -1) {
			line, _, _ := strings.Cut(strings.NewReplacer(" | ", "\x00", " > ", "\x00", "   ", "\x00").Replace(m[1]), "\x00")
			at, args, err := commandTree(t).Find(strings.Fields(line))
			if err == nil {
				err = at.ParseFlags(args)
			}
			if err != nil || (len(args) > 0 && !at.HasParent() && !strings.HasSuffix(args[0], ".yaml")) {
				t.Errorf("%s: the example carrick%s is wrong: %v", c.Name(), line, err)
			}
		}
	}
}

// The help on link files names every key of the schema, and its example is a
// link file.
func TestLinkFileHelpIsTheSchema(t *testing.T) {
	var schema struct {
		Properties map[string]json.RawMessage
		Defs       map[string]struct{ Properties map[string]json.RawMessage } `json:"$defs"`
	}
	if err := json.Unmarshal(steps.LinkSchema, &schema); err != nil || len(schema.Properties) == 0 || len(schema.Defs["side"].Properties) == 0 {
		t.Fatalf("the schema can't be read: %v", err)
	}
	shown := table(linkFields)
	for key := range schema.Properties {
		if !regexp.MustCompile(`(?m)^  (local, )?` + key).MatchString(shown) {
			t.Errorf("carrick help link-file does not say what %s is", key)
		}
	}
	forms := table(sideForms)
	for key := range schema.Defs["side"].Properties {
		if !strings.Contains(forms, key+": ") {
			t.Errorf("carrick help link-file does not say what %s of a side is", key)
		}
	}
	_, example, _ := strings.Cut(linkFile, "\n\n")
	if _, err := steps.ParseLink("example.yaml", []byte(strings.ReplaceAll(example, "\n  ", "\n")[2:]), guides()); err != nil {
		t.Error(err)
	}
}

// No completion is for a command or a flag that there is not.
func TestOutputsAreThoseOfTheFlags(t *testing.T) {
	root := commandTree(t)
	for name, of := range outputs {
		c := child(root, name)
		if c == nil || c.Flags().Lookup("output") == nil {
			t.Errorf("%s has no -o", name)
			continue
		}
		f := c.Flags().Lookup("output")
		if f.DefValue != of[0] {
			t.Errorf("%s: -o is %s by itself, not %s", name, f.DefValue, of[0])
		}
		for _, o := range of {
			if !strings.Contains(f.Usage, o) {
				t.Errorf("%s: -o %s is not in its sentence", name, o)
			}
		}
	}
}
