package ui

import (
	"carrick/steps/engine"
	"carrick/ui/model"
)

// mostEvents is the number of events that the feed keeps.
const mostEvents = 200

// addTransition adds a change of a cell's state to the feed.
func (a *app) addTransition(t model.Transition) {
	if t.Was == t.Is || t.Was == engine.Checking || t.Is == engine.Checking {
		return
	}
	a.feed.did(a.now(), a.t.sign(t.Is), a.live.Title(t.Cell, t.Cell)+": "+t.Is.String())
	if n := len(a.feed); n > mostEvents {
		a.feed = a.feed[n-mostEvents:]
	}
}

// feedLines returns the latest events in h lines of w columns: changes of states, and what carrick changed.
func (a *app) feedLines(w, h int) []string {
	out := []string{a.t.title.Render("Events")}
	list := a.events()
	if len(list) == 0 {
		return append(out, faint(a.t, wrap("Nothing has changed since the wizard started.", w))...)
	}
	var lines []string
	for _, e := range list {
		lines = append(lines, a.entryLines(e, w)...)
	}
	if n := len(lines); n > h-1 {
		lines = lines[n-h+1:]
	}
	return append(out, lines...)
}

// events returns the entries of the log and of the feed, oldest first.
func (a *app) events() journal {
	var out journal
	i, k := 0, 0
	for i < len(a.log) || k < len(a.feed) {
		if k == len(a.feed) || i < len(a.log) && !a.feed[k].at.Before(a.log[i].at) {
			out = append(out, a.log[i])
			i++
			continue
		}
		out = append(out, a.feed[k])
		k++
	}
	return out
}

// beside puts the right column next to the left one, which gets w columns.
func (a *app) beside(left, right []string, w int) []string {
	right = fill(right, len(left))
	for i := range left {
		left[i] = pad(left[i], w) + a.t.faint.Render("│") + " " + right[i]
	}
	return left
}
