package help

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
	"carrick/ui"
	"carrick/ui/lines"
)

// topic is a README section that carrick help prints. If section is "", the topic is the whole README.
type topic struct{ name, short, readme, section string }

func (a *helper) topics() []topic {
	return []topic{
		{"accessible", "The wizard as lines of text", lines.Readme, ""},
		{"add-a-guide", "Write your own guide", steps.Readme, "Add a guide"},
		{"environment", "The environment variables that carrick reads", a.Readme, "Environment"},
		{"existing-setup", "Adopt an existing set-up", a.Readme, "Existing set-ups"},
		{"exit-codes", "What the exit codes mean", a.Readme, "Exit codes"},
		{"files", "Files that carrick writes", steps.Readme, "Files that carrick writes"},
		{flagsTopic, "The flags of all commands", a.Readme, "Flags"},
		{"gitops", "Apply the manifests with other tools", a.Readme, "GitOps"},
		{"keys", "The keys of the screen", ui.Readme, "Keys"},
		{"link-file", "The format of link files", a.Readme, "Link files"},
		{"security", "What carrick trusts and does not trust", steps.Readme, "Security"},
		{"speed", "Speed, and how it is measured", cluster.Readme, "Speed"},
		{"troubleshooting", "Messages, their causes and what to do", a.Readme, "Troubleshooting"},
		{"two-admins", "Each admin has access to one side only", facts.Readme, ""},
	}
}

// LinkSchema is the only topic that is not part of a README. It prints the JSON schema, so that users can save it to a
// file.
const LinkSchema = "link-schema"

func (a *helper) guideTopics() []topic {
	var out []topic
	for _, g := range a.Guides {
		if g.Readme != "" {
			out = append(out, topic{g.Name, "The guide " + g.Name + ": " + g.Title, g.Readme, ""})
		}
	}
	return out
}

// topicCommands returns one command per topic, because cobra represents topics as commands. Their text is rendered only
// on demand.
func (a *helper) topicCommands() []*cobra.Command {
	out := []*cobra.Command{{Use: LinkSchema, Short: "The JSON schema of link files", GroupID: groupTopics}}
	for _, t := range a.topics() {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, GroupID: groupTopics})
	}
	return out
}

// flagsTopic is the topic that also lists the flags of all commands.
const flagsTopic = "flags"

// guideCommands returns one help topic per guide. These are subcommands of help, because carrick GUIDE must remain an
// error.
func (a *helper) guideCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, t := range a.guideTopics() {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, GroupID: groupGuides})
	}
	return out
}

func (a *helper) printTopic(w io.Writer, c *cobra.Command) {
	if c.Name() == LinkSchema {
		fmt.Fprintln(w, strings.TrimRight(string(linkfile.Schema), "\n"))
		return
	}
	fmt.Fprintln(w, a.named(plain.Text(Topic(a.Options, c.Name()))))
	if c.Name() == flagsTopic {
		printGlobalFlags(w, c.Root())
	}
}

// Topic returns the Markdown of a topic, or "" if the topic does not exist.
func Topic(o Options, name string) string {
	a := &helper{o}
	for _, t := range append(a.guideTopics(), a.topics()...) {
		if t.name == name {
			return t.markdown()
		}
	}
	return ""
}

// markdown returns the text without its heading.
func (t topic) markdown() string {
	if t.section == "" {
		_, text, _ := strings.Cut(t.readme, "\n")
		return text
	}
	return plain.Section(t.readme, t.section)
}
