package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"carrick/steps"
	"carrick/steps/engine"
)

// report returns the whole board as Markdown for a ticket. It contains the link and its sides, then the failures, then
// every verdict. Text from a cluster is in code spans, where Markdown has no effect.
func (a *app) report(now time.Time) []string {
	l := a.live
	guide, link := l.Guide(), l.Session.Link()
	by := ""
	if a.o.Version != "" {
		by = " by carrick " + a.o.Version
	}
	out := []string{
		"# " + guide.Title + ": " + oneLine(link.Name()), "",
		fmt.Sprintf("Checked at %s%s (guide %s).", now.Format(time.RFC3339), by, guide.Name),
	}
	if a.o.Banner != "" {
		out = append(out, "This is a "+oneLine(a.o.Banner)+".")
	}
	out = append(append(out, ""), a.reportSides()...)
	out = append(out, "", "**"+l.Board.Count("").String()+"**", "", "## Broken and next", "")
	out = append(out, a.reportWrongs()...)
	out = append(out, "", "## All checks")
	for i := range guide.Steps {
		s := &guide.Steps[i]
		out = append(out, "", fmt.Sprintf("### %d %s: %s", i+1, s.Title, l.Board.Count(s.Name)), "")
		for _, c := range guide.Cells() {
			if c.Step == s.Name {
				out = append(out, a.reportCell(c))
			}
		}
	}
	return out
}

func (a *app) reportSides() []string {
	l := a.live
	guide := l.Guide()
	out := []string{"| side | context | version | answers |", "|---|---|---|---|"}
	for _, side := range steps.Sides {
		p, end := l.Liveness(side), l.Session.Endpoint(side)
		version, answers := p.Version, "yes"
		switch {
		case guide.Sides[side].Kind == steps.Host:
			version = "a machine"
		case version == "":
			version = "not known"
		}
		switch {
		case p.Absent != "":
			answers = "no: " + oneLine(p.Absent)
		case p.Trouble != "":
			answers = "no: " + oneLine(p.Trouble)
		case p.Name == "":
			answers = "not checked yet"
		case p.Latency > 0:
			answers = fmt.Sprintf("in %d ms", max(1, p.Latency.Milliseconds()))
		}
		cell := func(s string) string { return strings.ReplaceAll(code(s), "|", "/") }
		out = append(
			out,
			fmt.Sprintf(
				"| %s | %s | %s | %s |", guide.Sides[side].Name, cell(end.Name), cell(version),
				strings.ReplaceAll(answers, "|", "/"),
			),
		)
	}
	return out
}

// reportWrongs returns the verdicts that do not pass. Failures come before unknowns. Within a state, the cells that
// block the most other cells come first.
func (a *app) reportWrongs() []string {
	l := a.live
	guide, causes := l.Guide(), l.Board.Causes()
	var out []string
	for _, c := range a.live.Wrong(engine.Failed, engine.Unknown, engine.InProgress, engine.ToDo, engine.Warning) {
		check, step := guide.Check(c.Check)
		r, word := l.Board.Verdict(c), reported(l.Board.State(c))
		out = append(
			out, fmt.Sprintf("- **%s**, %s, step %s: %s", word, guide.Sides[c.Side].Name, step.Title, check.Title),
		)
		out = append(out, "  - found: "+code(a.foundOf(c)))
		if check.Why != "" {
			out = append(out, "  - why it matters: "+oneLine(check.Why))
		}
		if n := causes[c]; n > 0 {
			out = append(out, "  - blocks "+steps.Plural(n, "other check"))
		}
		if fix := strings.TrimSpace(r.Fix); fix != "" {
			out = append(out, "  - what to do:", "", "    ```sh")
			for _, line := range manyLines(fix) {
				out = append(out, "    "+strings.ReplaceAll(line, "```", "'''"))
			}
			out = append(out, "    ```", "")
		}
		out = append(out, fmt.Sprintf("  - more: `carrick explain %s/%s`", guide.Name, check.Name))
	}
	if out == nil {
		return []string{"Nothing."}
	}
	return out
}

// reported returns the word for a state in the report.
func reported(s engine.State) string { return strings.ToLower(s.String()) }

// reportCell formats one verdict as a line.
func (a *app) reportCell(c steps.Cell) string {
	guide := a.live.Guide()
	check, _ := guide.Check(c.Check)
	r := a.live.Board.Verdict(c)
	status := reported(a.live.Board.State(c))
	if !r.Status.Holds() && r.Status != steps.Skip {
		status = "**" + status + "**"
	}
	line := fmt.Sprintf("- %s · %s · %s", status, guide.Sides[c.Side].Name, check.Title)
	if found := a.foundOf(c); found != "" {
		line += ": " + code(found)
	}
	return line
}

// code formats untrusted text as a code span in Markdown.
func code(s string) string {
	s = strings.ReplaceAll(oneLine(s), "`", "'")
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// plainText returns text for a file or the normal screen, without styles and unsupported characters.
func (a *app) plainText(s string) string {
	s = ansi.Strip(s)
	if a.t.plain != nil {
		s = a.t.plain.Replace(s)
	}
	return s
}
