package ui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"carrick/ui/model"
)

// askedView returns the complete request to the user, wrapped to w columns. An address that does not fit on the current
// line starts a new line. If the terminal supports links, addresses are links.
func (r *run) askedView(a *app, w int) []string {
	var out []string
	for _, l := range r.Asked.Lines {
		l = oneLine(l)
		at := 0
		var lines []string
		for _, span := range model.Address.FindAllStringIndex(l, -1) {
			lines = flow(lines, l[at:span[0]], w-3)
			lines = putAddress(lines, l[span[0]:span[1]], w-3, a.term)
			at = span[1]
		}
		lines = flow(lines, l[at:], w-3)
		out = append(out, hang(" "+a.t.accent.Render("▸")+" ", lines)...)
	}
	return out
}

// flow appends text to lines word by word, wrapped to w columns.
func flow(lines []string, text string, w int) []string {
	for i, word := range strings.Fields(text) {
		glued := i == 0 && !strings.HasPrefix(text, " ") // no space before the word, as for a period
		lines = join(lines, []string{word}, glued, w)
	}
	return lines
}

// putAddress appends an address as a link. If the address is longer than a line, it is split into pieces.
func putAddress(lines []string, url string, w int, t abilities) []string {
	var pieces []string
	for rest := url; rest != ""; {
		piece := ansi.Truncate(rest, max(1, w), "")
		if piece == "" {
			break
		}
		pieces = append(pieces, t.link(url, piece, "id=ask"))
		rest = rest[len(piece):]
	}
	return join(lines, pieces, false, w)
}

// join appends a word, given in pieces, to lines. A word with only one piece goes on the last line if it fits.
// Otherwise each piece gets its own line. If glued is true, no space precedes the word.
func join(lines, pieces []string, glued bool, w int) []string {
	if len(pieces) == 0 {
		return lines
	}
	if n := len(lines); n > 0 {
		gap := " "
		if glued {
			gap = ""
		}
		if joined := lines[n-1] + gap + pieces[0]; len(pieces) == 1 && width(joined) <= w {
			lines[n-1] = joined
			return lines
		}
	}
	for _, p := range pieces {
		lines = append(lines, clip(p, w))
	}
	return lines
}

// asks reports whether the run waits for the user to act.
func (r *run) asks() bool { return r.busy() && r.visible() && len(r.Asked.Lines) > 0 }

// needs returns the minimum number of lines that the view of a run requires.
func (r *run) needs(a *app, w int) int {
	if r.failed() {
		return min(linesOf(r.failure(a, w)), a.h/2)
	}
	if !r.asks() {
		return 0
	}
	return len(r.askedView(a, w)) + 1 // one additional line for the progress
}
