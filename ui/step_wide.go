package ui

import (
	"fmt"

	"carrick/steps"
)

// wideView puts the steps at the left, the checks in the middle and the
// evidence at the right.
func (p *stepPage) wideView(l layout) []string {
	a := p.a
	out := []string{a.headline(p.guide().Title, a.where(p.at)), a.sidesLine(), a.rule()}
	middle := append([]string{p.titleLine(l)}, p.whyLines(l)...)
	middle = append(middle, p.table(l)...)
	left, right := fill(p.stepColumn(l.steps), len(middle)), fill(p.pane(l.side, len(middle)), len(middle))
	bar := a.t.faint.Render("│")
	for i := range middle {
		out = append(out, pad(left[i], l.steps)+bar+pad(middle[i], l.main)+bar+clip(right[i], l.side))
	}
	out = append(out, a.rule(), p.totals())
	return append(fill(out, a.h-1), p.foot())
}

// stepColumn is the list of steps with their states and, of those that are not
// on screen, their age.
func (p *stepPage) stepColumn(w int) []string {
	a := p.a
	var out []string
	for i := range p.guide().Steps {
		s := &p.guide().Steps[i]
		state := a.live.state(s.Name)
		sign := a.t.ink(state).Render(glyph(state))
		title := clip(fmt.Sprintf("%d %s", i+1, s.Title), w-4)
		if i == p.at {
			title = a.t.selected.Render(pad(title, w-4))
		}
		out = append(out, " "+sign+" "+title, a.t.faint.Render(clip("     "+p.stepNote(i, state), w)))
	}
	return append(out, "   "+a.t.faint.Render(fmt.Sprintf("%d Summary", len(p.guide().Steps)+1)))
}

// stepNote says what is wrong with a step, or how old its verdicts are.
func (p *stepPage) stepNote(i int, state steps.Status) string {
	name := p.guide().Steps[i].Name
	n := p.a.live.board.Count(name)
	switch {
	case n.Of(steps.Fail) > 0:
		return fmt.Sprintf("%d failed", n.Of(steps.Fail))
	case n.Of(steps.Unknown) > 0:
		return fmt.Sprintf("%d unknown", n.Of(steps.Unknown))
	case state == steps.Pending:
		return "looking"
	case state == steps.Waiting:
		return fmt.Sprintf("%d waiting", n.Of(steps.Waiting))
	case i == p.at:
		return "live"
	}
	return p.ago(p.a.live.seen(name))
}
