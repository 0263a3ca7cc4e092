package ui

import (
	"fmt"

	"carrick/steps/engine"
)

// wideView puts the steps on the left, the checks beside them, and the evidence on the right or below the checks.
func (p *stepPage) wideView(l layout) []string {
	a := p.a
	out := []string{a.headline(p.guide().Title, a.where(p.at)), a.sidesLine(), a.rule()}
	middle := append([]string{p.titleLine(l)}, p.whyLines(l)...)
	table, hidden := p.table(l)
	middle = append(middle, table...)
	var right []string
	bottom := a.rule()
	if l.side > 0 {
		right = fill(p.pane(l.side, len(middle)), len(middle))
		bottom = a.foldRule(0, l.steps+1) + a.foldRule(hidden, l.right(a))
	} else {
		middle = append(middle, a.foldRule(hidden, l.right(a)))
		middle = append(middle, fill(p.pane(l.right(a), l.detail), l.detail)...)
	}
	left := fill(p.stepColumn(l.steps, len(middle)), len(middle))
	bar := a.t.faint.Render("│")
	for i := range middle {
		line := pad(left[i], l.steps) + bar
		if l.side > 0 {
			line += pad(middle[i], l.main) + bar + clip(right[i], l.side)
		} else {
			line += clip(middle[i], l.right(a))
		}
		out = append(out, line)
	}
	out = append(out, bottom, p.totals())
	return append(fill(out, a.h-1), p.foot())
}

// stepColumn returns the list of steps with their states. If there is room, it adds a note about each step. The list
// always contains the step on screen.
func (p *stepPage) stepColumn(w, h int) []string {
	a, all := p.a, p.guide().Steps
	notes := 2*len(all) < h
	var out []string
	at := 0
	for i := range all {
		state := a.live.State(all[i].Name)
		sign := a.t.sign(state)
		title := clip(fmt.Sprintf("%*d %s", p.digits(), i+1, all[i].Title), w-4)
		if i == p.at {
			at = len(out)
			title = a.t.selected.Render(pad(title, w-4))
		}
		out = append(out, " "+sign+" "+title)
		if notes {
			out = append(out, a.t.faint.Render(clip(pad("", 4+p.digits())+p.stepNote(i, state), w)))
		}
	}
	out = append(out, "   "+a.t.faint.Render(fmt.Sprintf("%*d Summary", p.digits(), len(all)+1)))
	c := cursor{at: at}
	from, to := c.window(len(out), h)
	return out[from:to]
}

// stepNote returns what is wrong with a step, or how old its verdicts are.
func (p *stepPage) stepNote(i int, state engine.State) string {
	name := p.guide().Steps[i].Name
	n := p.a.live.Board.Count(name)
	switch {
	case state == engine.Failed, state == engine.Unknown, state == engine.InProgress, state == engine.ToDo:
		return engine.StateCount{State: state, N: n.Of(state)}.String()
	case state == engine.Checking:
		return state.String()
	}
	return p.a.live.Follows(name)
}
