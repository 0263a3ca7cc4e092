package ui

import (
	"fmt"
	"io"
	"strings"

	"carrick/ui/farewell"
)

type command struct{ command, what string }

// commands returns shell commands for working with the link outside the wizard. They include the undo, unless the link
// has created nothing.
func (a *app) commands(nothing bool) []command {
	var out []command
	s := a.live.Session
	for _, c := range (farewell.Stand{Guide: s.Guide(), Link: s.Link(), Dir: a.dir, Nothing: nothing}).Commands() {
		out = append(out, command{c.Run, c.What})
	}
	return out
}

// shortPath returns a path relative to the working directory if that is shorter.
func (a *app) shortPath(path string) string { return farewell.ShortPath(a.dir, path) }

// farewell prints the state of the link and the next commands on the normal screen.
func (a *app) farewell(w io.Writer) error {
	if a.live == nil {
		if a.left != interrupted {
			return nil
		}
		_, err := fmt.Fprintln(w, farewell.Nothing)
		return err
	}
	link := a.live.Session.Link()
	stand := farewell.Stand{Guide: a.live.Guide(), Link: link, Board: a.live.Board, Dir: a.dir}
	lines := wrap(stand.Title()+": "+a.live.Board.Count("").String(), max(20, a.w))
	lines = append(lines, a.stepList(-1, min(100, max(20, a.w)))...)
	list, more := stand.Wrongs()
	for _, c := range list {
		lines = append(lines, hang("   "+c.State.Glyph()+" ", wrap(c.Text, max(20, a.w-5)))...)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("     and %d more", more))
	}
	lines = append(lines, "")
	if a.o.Passing {
		lines = append(lines, hang("  ", wrap(farewell.Gone, max(20, a.w-2)))...)
	} else {
		lines = append(lines, a.onwardLines(15+width(a.shortPath(link.Path)))...)
	}
	_, err := io.WriteString(w, a.plainText(strings.Join(lines, "\n"))+"\n")
	return err
}

// onwardLines returns the next commands. Descriptions that fit are aligned in a column.
func (a *app) onwardLines(column int) []string {
	var out []string
	s, ok := a.page.(*summary)
	for _, c := range a.commands(ok && s.nothing()) {
		line := fmt.Sprintf("  %-*s  %s", column, c.command, c.what)
		if a.w > 0 && width(line) > a.w {
			out = append(out, "  "+c.what+":")
			line = "    " + c.command
		}
		out = append(out, line)
	}
	return out
}
