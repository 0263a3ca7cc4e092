package ui

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"carrick/steps"
)

// address is a web address inside a text; a full stop after it is none of it.
var address = regexp.MustCompile(`https?://[^\s<>"']*[^\s<>"'.,;:!?)\]]`)

// asking is what an action in hand wants from the person at the screen: an
// address to open, a code to type. It stays in view until the action goes on.
type asking struct {
	action string
	lines  []string
	person bool // it said itself that it waits for one
}

// heard takes in what asks for something, and tells whether it did; it forgets
// all where the action has gone on.
func (q *asking) heard(e steps.Event) bool {
	if q.action != "" && (e.Verb != "" || e.Action != q.action) {
		*q = asking{}
	}
	text := oneLine(e.Text)
	if e.Verb != "" || e.Action == "" || (!e.Asks && !address.MatchString(text)) {
		return false
	}
	q.action = e.Action
	q.person = q.person || e.Asks
	q.lines = append(q.lines, text)
	return true
}

// address is the one to open: of several the longest, which has the code in it.
func (q *asking) address() string {
	best := ""
	for _, l := range q.lines {
		for _, found := range address.FindAllString(l, -1) {
			if len(found) > len(best) {
				best = found
			}
		}
	}
	return best
}

// view is all that is asked, whole: addresses stand on lines of their own
// where they would be broken otherwise, and are links where the terminal knows
// links.
func (q *asking) view(a *app, w int) []string {
	var out []string
	for _, l := range q.lines {
		at := 0
		var lines []string
		for _, span := range address.FindAllStringIndex(l, -1) {
			lines = flow(lines, l[at:span[0]], w-3)
			lines = putAddress(lines, l[span[0]:span[1]], w-3, a.term)
			at = span[1]
		}
		lines = flow(lines, l[at:], w-3)
		out = append(out, hang(" "+a.t.accent.Render("▸")+" ", lines)...)
	}
	return out
}

// flow adds the words of a text to some lines.
func flow(lines []string, text string, w int) []string {
	for i, word := range strings.Fields(text) {
		glued := i == 0 && !strings.HasPrefix(text, " ") // a full stop after an address
		lines = join(lines, []string{word}, glued, w)
	}
	return lines
}

// putAddress adds an address: a link, in pieces where one line can't hold it.
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

// join puts a word after the last line where it fits, else below.
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

// asks tells whether a person is waited for.
func (r *run) asks() bool { return r.busy() && r.visible() && len(r.asked.lines) > 0 }

// needs is how many lines the view of a run should have at least.
func (r *run) needs(a *app, w int) int {
	if r.failed() {
		return min(linesOf(r.failure(a, w)), a.h/2)
	}
	if !r.asks() {
		return 0
	}
	return len(r.asked.view(a, w)) + 1 // and that it goes on
}
