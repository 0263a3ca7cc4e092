package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carrick/steps"
	"carrick/ui"
)

// row is one line of a table that help, man page and README share. It may hold
// Markdown's backticks, which only the README keeps.
type row struct{ name, means string }

// exitCodes are in the order in which the first that holds counts. The
// constants of exit.go are the same codes.
var exitCodes = []struct {
	code  int
	means string
}{
	{exitInterrupted, "interrupted"},
	{exitDeadline, "`--wait` ran out"},
	{exitUsage, "usage, a bad file, a file of facts that can't be used, or an answer or a yes of its own is missing (`--yes`, `--signer`, `--take-over`, `--replace`) and there is nobody to ask"},
	{exitPartWay, "stopped part-way: some things were changed; the same command goes on from there"},
	{exitFailed, "`check`: a check failed; `diff`: there are changes"},
	{exitUnknown, "something is unknown or still waiting; for `apply` and `check` with a file of facts: it is the other admin's turn; for `export`: something can't be known yet"},
	{exitWarnings, "warnings, with `--fail-on warning` or `--fail-on NAME`"},
	{exitOther, "any other error, missing rights among them"},
	{0, "green"},
}

func exitRows() []row {
	var rows []row
	for _, e := range exitCodes {
		rows = append(rows, row{fmt.Sprint(e.code), e.means})
	}
	return rows
}

// environment is what carrick reads of it.
var environment = []row{
	{"`KUBECONFIG`", "as kubectl reads it"},
	{"`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`", "the proxy for requests, as kubectl's; a `proxy-url` of the kubeconfig goes first"},
	{"`XDG_STATE_HOME`", "where the audit log and the log are; default `~/.local/state`"},
	{"`XDG_CONFIG_HOME`", "where the key is that signs facts files; default `~/.config`"},
	{"`VISUAL`, `EDITOR`", "the editor for long answers"},
	{"`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`", "colours; `--color` goes first"},
	{"`ACCESSIBLE`", "set: the wizard in lines of text, as with `--accessible`"},
	{"`TERM`, `COLORTERM`", "how many colours; with `TERM=dumb` the wizard speaks in lines"},
	{"`COLORFGBG`", "a hint at the background, where the terminal does not say"},
	{"`LC_ALL`, `LC_CTYPE`, `LANG`", "the first that is set; plain characters where it is `C`, `POSIX`, or none is set"},
}

// keyRows are the keys of the screen, from the table that the screen has.
func keyRows() []row {
	var rows []row
	for i, line := range strings.Split(strings.TrimSpace(ui.KeyTable()), "\n") {
		if cells := strings.Split(strings.Trim(line, "| "), " | "); i > 1 && len(cells) == 2 {
			rows = append(rows, row{cells[0], cells[1]})
		}
	}
	return rows
}

const exitAfter = "apply gives 0 once everything is made that it makes, although a check may fail that is for somebody else to mend: end a script with check. Data goes to standard output, everything else to standard error."

const linkFile = `A link file is one use of a guide between two sides. The wizard writes one;
check, diff, apply, undo and export read it. It holds no secret: keep it in git.

  apiVersion: carrick/v1alpha1
  kind: Link
  metadata: {name: milan-rome}
  guide: renku
  local:  {context: kind-milan}
  remote: {context: gke-rome, kubeconfig: ~/.kube/rome}
  answers:
    sessions.namespace: renku-sessions

`

// linkFields are the keys of a link file; a test holds them against the schema.
var linkFields = []row{
	{"apiVersion", "carrick/v1alpha1"},
	{"kind", "Link"},
	{"metadata.name", fmt.Sprintf("names the link, and marks all that it makes: lower-case letters, digits and -, at most %d characters", steps.MaxLinkName)},
	{"guide", "one that carrick guides lists"},
	{"local, remote", "the two sides: each is one of the forms below, or is left out"},
	{"answers", "what differs from what carrick finds out by itself; carrick guides GUIDE lists the keys"},
}

// sideForms are what may stand on a side.
var sideForms = []row{
	{"{context: NAME}", "a context of the kubeconfig that kubectl would read"},
	{"{context: NAME, kubeconfig: FILE}", "a context of that file; relative to the link file, ~ is the home folder"},
	{"{host: {root: /}}", "this machine, where the guide has a host on that side; another root is a folder that stands for one"},
	{"{facts: FILE, signer: SHA256:…, taken: TIME}", "a file of facts that the other admin handed over, and the key that signs it: carrick apply asks once whose key it is and writes signer; taken is when the newest file that a change used was written"},
	{"left out", "nothing: its checks are skips that say so, and apply and undo need --side"},
}

// topics are what carrick help explains beyond commands. Long is as it is
// shown.
func (a *app) topics() []*cobra.Command {
	topic := func(name, short string, parts ...string) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Long: strings.TrimRight(strings.Join(parts, "\n"), "\n"), GroupID: groupHelp}
	}
	return []*cobra.Command{
		topic("exit-codes", "What the exit codes mean",
			"Where several hold, the first of these:\n", table(exitRows()), wrapped(exitAfter)),
		topic("environment", "The environment variables that carrick reads", table(environment)),
		topic("keys", "The keys of the screen", table(keyRows())),
		topic("link-file", "What a link file holds", linkFile+table(linkFields), "A side is one of:\n", table(sideForms),
			wrapped("An answer that is not there is found out: carrick LINK shows each with where it came from, and e edits them. Secrets are never in the file: the wizard asks for them, or --secret KEY=@FILE."),
			"\nIts JSON schema: "+a.name+" help link-schema"),
		topic("link-schema", "The JSON schema of link files", string(steps.LinkSchema)),
	}
}

// table is rows for a terminal: the names in one column, or above what they
// mean where one is long.
func table(rows []row) string {
	const most = 24
	wide := 0
	for _, r := range rows {
		if n := runes(plain(r.name)); n <= most {
			wide = max(wide, n)
		}
	}
	return aligned(rows, wide)
}

// aligned is rows with names in a column of that width.
func aligned(rows []row, wide int) string {
	var b strings.Builder
	for _, r := range rows {
		name := plain(r.name)
		if runes(name) > wide {
			fmt.Fprintf(&b, "  %s\n", name)
			name = ""
		}
		hang := strings.Repeat(" ", wide+4)
		text := hanging(plain(r.means), hang)
		fmt.Fprintf(&b, "  %s%s  %s\n", name, strings.Repeat(" ", wide-runes(name)), strings.TrimLeft(text, " "))
	}
	return b.String()
}

// markdown is rows as the README has them.
func markdown(head string, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | |\n|---|---|\n", head)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", r.name, r.means)
	}
	return b.String()
}

func plain(markdown string) string { return strings.ReplaceAll(markdown, "`", "") }
