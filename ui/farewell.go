package ui

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"carrick/steps"
)

// command is something to run, and what it does.
type command struct{ command, what string }

// commands are how to go on with a link without the screen, and how to go
// back.
func (a *app) commands(l *steps.Link) []command {
	path := a.shortPath(l.Path)
	return []command{
		{"carrick " + path, "goes on here"},
		{"carrick check " + path, "every check, once"},
		{"carrick undo " + path, "takes back what it made"},
	}
}

// shortPath is a path as it is typed from the working directory.
func (a *app) shortPath(path string) string {
	if rel, err := filepath.Rel(a.dir, path); err == nil && a.dir != "" && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

// farewell prints on the normal screen where everything stands and how to go
// on.
func (a *app) farewell(w io.Writer) error {
	if a.live == nil {
		if a.left != interrupted {
			return nil
		}
		_, err := fmt.Fprintln(w, "carrick: left before anything was set up")
		return err
	}
	guide, link := a.live.session.Guide(), a.live.session.Link()
	lines := []string{fmt.Sprintf("%s · %s: %s", guide.Title, oneLine(link.Name()), a.live.board.Count(""))}
	if r := a.run; r != nil && r.changed > 0 {
		if n := a.live.behind(r.began.Add(r.took)); n > 0 {
			lines = append(lines, fmt.Sprintf("  %s as before the last change: carrick was left before they were looked at again", plural(n, "check")))
		}
	}
	lines = append(lines, a.stepList(-1, 100)...)
	lines = append(lines, a.wrongs()...)
	lines = append(lines, "")
	if a.o.Passing {
		_, err := io.WriteString(w, a.plainText(strings.Join(lines, "\n"))+"  The clusters of the demo are gone, and what was made in them. Yours: carrick\n")
		return err
	}
	for _, c := range a.commands(link) {
		lines = append(lines, fmt.Sprintf("  %-*s  %s", 15+width(a.shortPath(link.Path)), c.command, c.what))
	}
	_, err := io.WriteString(w, a.plainText(strings.Join(lines, "\n"))+"\n")
	return err
}

// wrongLines is how many cells the farewell names; check says the rest.
const wrongLines = 8

// wrongs are the cells that fail, then those that could not be looked at.
func (a *app) wrongs() []string {
	guide := a.live.session.Guide()
	var out []string
	named := 0
	for _, status := range []steps.Status{steps.Fail, steps.Unknown} {
		for _, c := range guide.Cells() {
			r := a.live.board.Verdict(c)
			if r.Status != status {
				continue
			}
			if named++; named <= wrongLines {
				check, _ := guide.Check(c.Check)
				text := fmt.Sprintf("%s: %s: %s", guide.Sides[c.Side].Name, check.Title, oneLine(r.Found))
				out = append(out, hang("   "+glyph(status)+" ", wrap(text, max(20, a.w-5)))...)
			}
		}
	}
	if more := named - wrongLines; more > 0 {
		out = append(out, fmt.Sprintf("     and %d more", more))
	}
	return out
}
