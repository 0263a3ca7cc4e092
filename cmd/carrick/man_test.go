package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/plain"
)

// manFolder is the folder to which make man writes the pages. A test writes them, so that the generator is not part of
// carrick.
var manFolder = flag.String("man", "", "folder to write the man pages into")

// Every command has a man page with a description, and a line for every flag.
func TestManPages(t *testing.T) {
	dir := *manFolder
	if dir == "" {
		dir = t.TempDir()
	}
	root := commandTree(t)
	if err := writeMan(root, dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range every(root) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		page, err := carricktest.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Errorf("no page: %v", err)
			continue
		}
		page = strings.NewReplacer(`\-`, "-", `\fB`, "", `\fP`, "", `\(aq`, "'", `\&`, "").Replace(page)
		if !strings.Contains(page, name+" - "+c.Short) {
			t.Errorf("the page of %s does not say what it is", name)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, usage := pflag.UnquoteUsage(f)
			if !strings.Contains(page, "--"+f.Name) || !strings.Contains(page, usage) {
				t.Errorf("the page of %s does not say what --%s is", name, f.Name)
			}
		})
	}
	page, err := carricktest.ReadFile(filepath.Join(dir, "carrick.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		".SH EXIT STATUS", ".SH ENVIRONMENT", ".SH KEYS", "XDG_STATE_HOME", "124", "stopped part", "ctrl+z",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("carrick.1 has no %s", want)
		}
	}
}

// writeMan writes one page per command.
func writeMan(c *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writeMan(sub, dir); err != nil {
			return err
		}
	}
	page := *c
	page.Long = manText(c)
	if !c.HasParent() {
		page.Long += "\n# EXIT STATUS\n" + manTopic("exit-codes") + "\n# ENVIRONMENT\n" + manTopic("environment") +
			"\n# KEYS\n" + manTopic("keys")
	}
	quoted := map[*pflag.Flag]string{} // a value's name is of --help
	c.Flags().VisitAll(func(f *pflag.Flag) {
		quoted[f] = f.Usage
		_, f.Usage = pflag.UnquoteUsage(f)
	})
	defer func() {
		for f, usage := range quoted {
			f.Usage = usage
		}
	}()
	page.DisableAutoGenTag = true
	var b bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Source: "carrick " + release, Manual: "carrick", Date: manDate()}
	if err := doc.GenMan(&page, header, &b); err != nil {
		return err
	}
	text := manTerm.ReplaceAllString(b.String(), ".TP\n$1\n$2")
	text = strings.NewReplacer("[=false]", "", `\fP=""`, `\fP`, `\fP=[]`, `\fP`, `\fP=0s`, `\fP`).Replace(text)
	return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"), []byte(text), 0o644)
}

// manTerm matches a term with its meaning. Package doc writes both into one paragraph.
var manTerm = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB.*)\n\t(.*)$`)

// manDate returns nil if SOURCE_DATE_EPOCH is set, because package doc then reads that variable. Otherwise it returns a
// fixed date.
func manDate() *time.Time {
	if os.Getenv("SOURCE_DATE_EPOCH") != "" {
		return nil
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &day
}

// manText returns a description as Markdown. Indented lines become code blocks.
func manText(c *cobra.Command) string {
	if c.Long == "" {
		return c.Short + "."
	}
	var b strings.Builder
	kept := false
	for _, line := range strings.Split(c.Long, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != kept {
			kept = indented
			b.WriteString("\n")
		}
		if kept {
			line = "    " + line
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// manTopic returns the text of a topic as Markdown that package doc supports: tables become lists of terms.
func manTopic(name string) string {
	var b strings.Builder
	text := topicOf(name)
	listed := false
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			b.WriteString(line + "\n")
			continue
		}
		if !listed {
			for _, r := range plain.TableRows(text) {
				b.WriteString("**" + strings.NewReplacer("`", "", "*", `\*`).Replace(r.Name) + "**\n\t" + r.Means + "\n\n")
			}
		}
		listed = true
	}
	return b.String()
}
