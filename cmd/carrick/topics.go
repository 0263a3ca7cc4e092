package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
	"carrick/ui"
	"carrick/ui/lines"
)

// topic is a part of a README that carrick help shows: a section, or without one all of it. Each package embeds the
// README of its own folder.
type topic struct{ name, short, readme, section string }

//go:embed README.md
var commandReadme string

// topics are what carrick help explains in addition to commands and guides.
var topics = []topic{
	{"accessible", "The wizard in lines of text", lines.Readme, ""},
	{"add-a-guide", "Write a guide of your own", steps.Readme, "Add a guide"},
	{"environment", "The environment variables that carrick reads", commandReadme, "Environment"},
	{"existing-setup", "Take over what another user set up", commandReadme, "Existing set-ups"},
	{"exit-codes", "What the exit codes mean", commandReadme, "Exit codes"},
	{"files", "What carrick writes, and where", steps.Readme, "What carrick writes, and where"},
	{"gitops", "Apply the manifests with other tools", commandReadme, "GitOps"},
	{"keys", "The keys of the screen", ui.Readme, "Keys"},
	{"link-file", "What a link file holds", commandReadme, "Link files"},
	{"security", "What carrick trusts, and what it does not", steps.Readme, "Security"},
	{"speed", "How fast carrick is, and how this is measured", cluster.Readme, "Speed"},
	{"troubleshooting", "Messages, their causes and what to do", commandReadme, "Troubleshooting"},
	{"two-admins", "Each admin has access to one side only", facts.Readme, ""},
}

// linkSchema is the one topic that no README holds: its text is a file to save.
const linkSchema = "link-schema"

// guideTopics returns a topic for each guide that has a README.
func (a *app) guideTopics() []topic {
	var out []topic
	for _, g := range a.guides {
		if g.Readme != "" {
			out = append(out, topic{g.Name, "The guide " + g.Name + ": " + g.Title, g.Readme, ""})
		}
	}
	return out
}

// topicCommands returns a command for each topic, as cobra requires. A topic is rendered only when it is shown.
func topicCommands() []*cobra.Command {
	out := []*cobra.Command{{Use: linkSchema, Short: "The JSON schema of link files", GroupID: groupTopics}}
	for _, t := range topics {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, GroupID: groupTopics})
	}
	return out
}

// guideCommands returns the same for the guides. They are commands of help, not of carrick: carrick GUIDE is an error
// that says how to use the guide.
func (a *app) guideCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, t := range a.guideTopics() {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, GroupID: groupGuides})
	}
	return out
}

// printTopic prints the text of a topic.
func (a *app) printTopic(w io.Writer, name string) {
	if name == linkSchema {
		fmt.Fprintln(w, strings.TrimRight(string(linkfile.Schema), "\n"))
		return
	}
	for _, t := range append(a.guideTopics(), topics...) {
		if t.name == name {
			fmt.Fprintln(w, a.named(plainText(t.markdown())))
		}
	}
}

// markdown returns the topic's part of its README, without the heading.
func (t topic) markdown() string {
	if t.section == "" {
		_, text, _ := strings.Cut(t.readme, "\n")
		return text
	}
	return section(t.readme, t.section)
}
