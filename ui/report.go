package ui

import (
	"fmt"
	"os"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"carrick/steps"
)

// save writes a report to a new file in the working directory and says its
// name.
func (a *app) save() tea.Cmd {
	now := a.now()
	name := fmt.Sprintf("carrick-%s-%s.txt", a.live.session.Link().Name(), now.Format("20060102-150405"))
	text := a.plainText(strings.Join(a.report(now), "\n") + "\n")
	return func() tea.Msg {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return noticeMsg{err: fmt.Errorf("save the report: %w", err)}
		}
		_, err = f.WriteString(text)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			_ = os.Remove(name) // half a report is none
			return noticeMsg{err: fmt.Errorf("save the report: %w", err)}
		}
		return noticeMsg{text: "saved " + name}
	}
}

// report is the whole board as text.
func (a *app) report(now time.Time) []string {
	l := a.live
	guide, link := l.session.Guide(), l.session.Link()
	out := []string{
		fmt.Sprintf("carrick %s · %s · %s", guide.Title, link.Name(), now.Format(time.RFC3339)),
		"",
	}
	for _, side := range steps.Sides {
		pulse := l.pulses[side]
		out = append(out, strings.TrimRight(fmt.Sprintf("%-12s %s  %s", guide.Sides[side].Name, oneLine(l.session.End(side).Name), pulse.Version), " "))
	}
	out = append(out, "", l.board.Count("").String())
	for i := range guide.Steps {
		s := &guide.Steps[i]
		out = append(out, "", fmt.Sprintf("%d %s: %s", i+1, s.Title, l.board.Count(s.Name)))
		for _, c := range guide.Cells() {
			if c.Step == s.Name {
				out = append(out, a.reportCell(c)...)
			}
		}
	}
	return out
}

func (a *app) reportCell(c steps.Cell) []string {
	guide := a.live.session.Guide()
	check, _ := guide.Check(c.Check)
	r := a.live.board.Verdict(c)
	out := []string{fmt.Sprintf("  %s %-8s %s: %s", glyph(r.Status), r.Status, guide.Sides[c.Side].Name, check.Title)}
	if r.Found != "" {
		out = append(out, "      "+oneLine(r.Found))
	}
	if r.Fix != "" && r.Status != steps.Pass {
		for _, l := range manyLines(r.Fix) {
			out = append(out, "      > "+l)
		}
	}
	return out
}

// plainText is text for a file or the normal screen: no styles, and no letters
// that the locale lacks.
func (a *app) plainText(s string) string {
	s = ansi.Strip(s)
	if a.t.plain != nil {
		s = a.t.plain.Replace(s)
	}
	return s
}
