package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/format"
	"carrick/cmd/carrick/guides"
	"carrick/cmd/carrick/help"
	"carrick/cmd/carrick/plain"
	"carrick/steps/linkfile"
)

// commandTree returns the complete tree of commands, as at run time.
func commandTree(t *testing.T) *cobra.Command {
	t.Helper()
	return commands.Root(this(), strings.NewReader(""), io.Discard, io.Discard)
}

// every returns the commands of a tree, without help topics.
func every(root *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if !c.Hidden && !c.IsAdditionalHelpTopicCommand() {
			out = append(out, c)
		}
	}
	return out
}

// topicOf returns the Markdown of a topic.
func topicOf(name string) string {
	return help.Topic(help.Options{Guides: guides.All(), Readme: readme}, name)
}

func exitRows() []plain.Row { return plain.TableRows(topicOf("exit-codes")) }

func rowNames(rows []plain.Row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, plain.Inline(r.Name))
	}
	return out
}

// Both tables of exit codes list the codes in exit.go, in order of precedence.
func TestReadmeNamesEveryExitCode(t *testing.T) {
	var want []string
	for _, code := range []int{
		exit.Interrupted, exit.Deadline, exit.Usage, exit.PartWay, exit.Failed, exit.Unknown, exit.Warnings, exit.Other, 0,
	} {
		want = append(want, fmt.Sprint(code))
	}
	for name, rows := range map[string][]plain.Row{
		"carrick help exit-codes": exitRows(), "README.md": plain.TableRows(plain.Section(mainText(t), "Exit codes")),
	} {
		if got := rowNames(rows); !slices.Equal(got, want) {
			t.Errorf("the exit codes of %s are %v, those of the program %v", name, got, want)
		}
	}
}

// The table of environment variables names every variable that carrick itself reads.
func TestReadmeNamesTheEnvironment(t *testing.T) {
	text := topicOf("environment")
	read := regexp.MustCompile(`(?:os\.Getenv|os\.LookupEnv|[gG]etenv)\("([A-Z_]+)"\)`)
	seen := 0
	for _, folder := range []string{".", "*", "../../ui", "../../ui/lines", "../../steps", "../../cluster"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "carricktest/") {
				continue
			}
			code, err := carricktest.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range read.FindAllStringSubmatch(code, -1) {
				if seen++; m[1] != "GOMEMLIMIT" && !strings.Contains(text, "`"+m[1]+"`") { // of the Go runtime
					t.Errorf("%s reads %s, which the README does not name", file, m[1])
				}
			}
		}
	}
	if seen < 3 || len(plain.TableRows(text)) < 8 {
		t.Errorf("%d reads of the environment, %d rows", seen, len(plain.TableRows(text)))
	}
}

var (
	commandCell = regexp.MustCompile("(?m)^\\| `(carrick[^`]*)` \\| ([^|]*) \\|(.*)\\|$")
	flagName    = regexp.MustCompile("`--?([a-z][-a-z]*)")
	escaped     = strings.NewReplacer(`\|`, "/")
)

// The README's table of commands names exactly the existing commands, each with exactly its own flags.
func TestReadmeNamesEveryCommandAndFlag(t *testing.T) {
	root := commandTree(t)
	listed := map[string][]string{}
	for _, m := range commandCell.FindAllStringSubmatch(escaped.Replace(plain.Section(mainText(t), "Commands")), -1) {
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
	flags := plain.Section(readme, "Flags")
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.HasPrefix(f.Name, help.RemotePrefix) && !strings.Contains(flags, "`--"+f.Name) {
			t.Errorf("cmd/carrick/README.md does not name --%s, which all commands have", f.Name)
		}
	})
}

// mainText returns the README at the root of the module, which carrick does not embed.
func mainText(t *testing.T) string {
	t.Helper()
	text, err := carricktest.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return text
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

// Help lists every command under a heading, with a description, an example and text that fits on a terminal.
func TestHelpIsWhole(t *testing.T) {
	root := commandTree(t)
	seen := 0
	for _, c := range slices.Concat(every(root), root.Commands(), help.Child(root, "help").Commands()) {
		var said bytes.Buffer
		root.SetOut(&said)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		if said.Len() == 0 {
			t.Errorf("%s: no help", c.Name())
		}
		code := codeOf(t, c)
		for _, line := range strings.Split(said.String(), "\n") {
			if plain.Width(line) > plain.Columns && c.Name() != help.LinkSchema && !code[strings.TrimSpace(line)] {
				t.Errorf("%s: a line of its help is %d wide: %s", c.Name(), plain.Width(line), line)
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

// codeOf returns the lines of a topic's code blocks, which help prints unchanged.
func codeOf(t *testing.T, c *cobra.Command) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	if !c.IsAdditionalHelpTopicCommand() || c.Name() == help.LinkSchema {
		return out
	}
	text := topicOf(c.Name())
	if len(strings.TrimSpace(text)) < 100 {
		t.Errorf("topic %s: there is no such section in its README, or almost no text", c.Name())
	}
	for i, block := range strings.Split(text, plain.Fence) {
		for line := range strings.Lines(block) {
			out[strings.TrimSpace(line)] = out[strings.TrimSpace(line)] || i%2 == 1
		}
	}
	return out
}

// Every example calls an existing command, with flags of that command.
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

// The help on link files names every key of the schema, and its example is a valid link file.
func TestLinkFileHelpIsTheSchema(t *testing.T) {
	var schema struct {
		Properties map[string]json.RawMessage
		Defs       map[string]struct{ Properties map[string]json.RawMessage } `json:"$defs"`
	}
	err := json.Unmarshal(linkfile.Schema, &schema)
	if err != nil || len(schema.Properties) == 0 || len(schema.Defs["side"].Properties) == 0 {
		t.Fatalf("the schema can't be read: %v", err)
	}
	text := topicOf("link-file")
	keys := strings.Join(rowNames(plain.TableRows(text)), "\n")
	for key := range schema.Properties {
		if !regexp.MustCompile(`(?m)^(local, )?` + key).MatchString(keys) {
			t.Errorf("carrick help link-file does not say what %s is", key)
		}
	}
	if most := fmt.Sprintf("at most %d characters", linkfile.MaxName); !strings.Contains(text, most) {
		t.Errorf("carrick help link-file does not say that a name has %s", most)
	}
	_, sides, _ := strings.Cut(text, "\nA side ")
	forms := strings.Join(rowNames(plain.TableRows(sides)), "\n")
	for key := range schema.Defs["side"].Properties {
		if !strings.Contains(forms, key+": ") {
			t.Errorf("carrick help link-file does not say what %s of a side is", key)
		}
	}
	_, example, _ := strings.Cut(text, plain.Fence+"yaml\n")
	example, _, _ = strings.Cut(example, plain.Fence)
	if _, err := linkfile.Parse("example.yaml", []byte(example), guides.All()); err != nil {
		t.Error(err)
	}
}

// The formats that completion offers match the -o flags of existing commands.
func TestOutputsAreThoseOfTheFlags(t *testing.T) {
	root := commandTree(t)
	for name, of := range format.ByCommand {
		c := help.Child(root, name)
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
