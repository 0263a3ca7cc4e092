package ui

import (
	"strconv"

	"carrick/steps"
)

// layout contains the size of each part of a step's screen. The sizes depend on the terminal and on the step, but not
// on the selection, so that parts do not move.
type layout struct {
	sides  bool // show the line of the sides
	rules  bool // show separators
	totals bool
	why    int // lines for the step's reason, including one empty line
	note   int // lines for the note about the screen size that shows both sides
	rows   int
	list   int // lines for the list of steps and its separator; 0 if it does not fit
	detail int
	// in columns
	steps, main, side int // steps, checks, evidence; without a wide screen only main is set. side is 0 below the checks
	cell              int // a verdict
}

func (p *stepPage) layout() layout {
	a := p.a
	l := layout{main: a.w, cell: p.cellWidth()}
	if a.wide() {
		return p.wideLayout(l)
	}
	l.sides, l.rules, l.totals = a.h >= middleFrom, a.h >= 14, a.h >= 8
	if a.narrow() && a.h >= 10 {
		l.note = 1
	}
	fixed := 3 // headline, title, footer
	if a.h < 5 {
		fixed = 2
	}
	fixed += l.note
	for _, b := range []bool{l.sides, l.totals, l.rules, l.rules, l.rules} {
		if b {
			fixed++
		}
	}
	l.detail = max(detailLines(a.h), a.run.needs(a, a.w))
	l.rows = a.h - fixed - l.detail
	if l.rows < 1 {
		l.detail, l.rows = max(0, l.detail+l.rows-1), 1
	}
	spare := p.giveWhy(&l)
	if more := min(max(0, spare-1), 6); more > 0 {
		l.detail += more
		l.rows -= more
		spare -= more
	}
	if list := len(p.guide().Steps) + 1; spare > list {
		l.list = list
		l.rows -= list
	}
	return l
}

// giveWhy assigns lines to the reason of the step, if that hides no check. It returns the number of spare lines.
func (p *stepPage) giveWhy(l *layout) int {
	spare := l.rows
	for i := range p.step().Checks {
		spare -= len(p.title(&p.step().Checks[i], *l))
	}
	if why := len(wrap(oneLine(p.step().Why), l.main-4)) + 1; spare >= why {
		l.why = why
		l.rows -= why
		spare -= why
	}
	return spare
}

// title returns the title of a check as lines. On a low screen, or if the title needs more than three lines, it is
// clipped to one line.
func (p *stepPage) title(c *steps.Check, l layout) []string {
	room := max(1, l.main-4-l.cell*len(p.shown()))
	out := hang2("", "  ", oneLine(c.Title), room+1)
	if p.a.h < middleFrom || len(out) > 3 {
		out = []string{clip(oneLine(c.Title), room)}
	}
	return out
}

func detailLines(h int) int {
	switch {
	case h >= 36:
		return 9
	case h >= 28:
		return 7
	case h >= tallFrom:
		return 5
	case h >= middleFrom:
		return 3
	case h >= 7:
		return 1
	}
	return 0
}

// wideLayout puts the steps on the left. It puts the evidence on the right if the titles keep their width, and
// otherwise below the checks.
func (p *stepPage) wideLayout(l layout) layout {
	a := p.a
	l.sides, l.rules, l.totals = true, true, true
	for i := range p.guide().Steps {
		l.steps = max(l.steps, width(p.guide().Steps[i].Title)+5+p.digits())
	}
	l.steps = min(l.steps, max(24, a.w/6))
	body := a.h - 6 // headline, sides, rule, rule, totals, footer
	checks := p.assertions() + 4 + l.cell*len(steps.Sides)
	if l.side = a.w - l.steps - checks - 2; l.side >= leastSide { // verdicts stay close to their titles
		l.main, l.detail, l.rows = checks, body, body-1
		p.giveWhy(&l)
		return l
	}
	l.main, l.side = min(checks, l.right(a)), 0
	l.detail = max(detailLines(a.h), a.run.needs(a, l.right(a)))
	l.detail = min(l.detail, body-3)
	l.rows = body - 2 - l.detail
	if more := max(0, p.giveWhy(&l)-1); more > 0 {
		l.rows, l.detail = l.rows-more, l.detail+more
	}
	return l
}

// right returns the width to the right of the list of steps.
func (l layout) right(a *app) int { return a.w - l.steps - 1 }

// leastSide is the smallest width of the evidence to the right of the checks.
const leastSide = 34

// assertions returns the width of the longest check title of the guide, from 40 to proseWidth.
func (p *stepPage) assertions() int {
	w := 40
	for _, s := range p.guide().Steps {
		for i := range s.Checks {
			w = max(w, width(oneLine(s.Checks[i].Title)))
		}
	}
	return min(w, proseWidth)
}

func (p *stepPage) digits() int { return len(strconv.Itoa(len(p.guide().Steps) + 1)) }

// cellWidth returns the width of a verdict column, which must fit the side's name.
func (p *stepPage) cellWidth() int {
	w := 10
	for _, r := range p.guide().Sides {
		w = max(w, width(r.Name)+2)
	}
	return w
}
