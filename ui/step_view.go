package ui

import (
	"fmt"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/engine"
)

func (p *stepPage) view() []string {
	a, l := p.a, p.layout()
	if a.wide() {
		return p.wideView(l)
	}
	out := []string{a.headline(p.guide().Title, a.where(p.at))}
	if l.sides {
		out = append(out, a.sidesLine(p.shown()...))
	}
	if l.rules {
		out = append(out, a.rule())
	}
	if a.h >= 5 {
		out = append(out, p.titleLine(l))
	}
	out = append(out, p.whyLines(l)...)
	table, hidden := p.table(l)
	out = append(out, table...)
	if l.note > 0 {
		out = append(
			out, a.t.faint.Render(fmt.Sprintf(" one side at a time, tab switches; %d×%d shows both", bothFrom, tallFrom)),
		)
	}
	if l.list > 0 {
		out = append(append(out, a.rule()), a.stepList(p.at, a.w-2)...)
	}
	if l.rules {
		out = append(out, a.foldRule(hidden, a.w))
	}
	out = append(out, fill(p.pane(a.w, l.detail), l.detail)...)
	if l.rules {
		out = append(out, a.rule())
	}
	if l.totals {
		out = append(out, p.totals())
	}
	return append(fill(out, a.h-1), p.foot())
}

// titleLine returns the step's number and title, and the column heads.
func (p *stepPage) titleLine(l layout) string {
	a := p.a
	left := fmt.Sprintf(" %s %s", a.t.title.Render(fmt.Sprint(p.at+1)), a.t.title.Render(p.step().Title))
	switch {
	case p.filter.Focused():
		p.filter.Width = max(4, min(30, l.main/3))
		left += "  " + p.filter.View() + a.t.faint.Render(p.filtered())
	case p.filter.Value() != "":
		left += "  " + a.t.accent.Render("/ "+p.filter.Value()) + a.t.faint.Render(p.filtered())
	case len(p.rows()) > l.rows:
		left += a.t.faint.Render(fmt.Sprintf("  %d of %d", p.place().row.at+1, len(p.rows())))
	}
	if n := p.hidden(); n > 0 && p.filter.Value() == "" && !p.filter.Focused() {
		if text := fmt.Sprintf("  . %d off", n); width(left)+width(text)+l.cell*len(p.shown()) < l.main {
			left += a.t.faint.Render(text)
		}
	}
	var heads string
	for _, side := range p.shown() {
		name := pad(p.guide().Sides[side].Name, l.cell)
		if _, cell, ok := p.cell(); ok && cell.Side == side {
			heads += a.t.title.Render(name)
		} else {
			heads += a.t.faint.Render(name)
		}
	}
	return pad(left, l.main-width(heads)) + heads
}

func (p *stepPage) filtered() string {
	return fmt.Sprintf("  %d of %d", len(p.rows()), len(p.step().Checks))
}

// shown returns the sides that have a column.
func (p *stepPage) shown() []steps.Side {
	if p.a.narrow() {
		return []steps.Side{p.side()}
	}
	return steps.Sides
}

func (p *stepPage) whyLines(l layout) []string {
	if l.why == 0 {
		return nil
	}
	var out []string
	for _, line := range wrap(oneLine(p.step().Why), l.main-4) {
		out = append(out, "   "+p.a.t.faint.Render(line))
	}
	return fill(out, l.why)
}

// table returns as many rows of checks as fit, and how many are below them.
func (p *stepPage) table(l layout) (lines []string, hidden int) {
	rows := p.rows()
	if len(rows) == 0 {
		text := "   no checks here on the " + p.guide().Sides[p.side()].Name
		if p.filter.Value() != "" {
			text = "   no row has this text; esc shows all"
		}
		return fill([]string{p.a.t.faint.Render(text)}, l.rows), 0
	}
	_, cell, _ := p.cell()
	drawn, heights := make([][]string, len(rows)), make([]int, len(rows))
	for i := range rows {
		drawn[i] = p.row(rows[i], cell, l)
		heights[i] = len(drawn[i])
	}
	from, to := p.place().row.span(heights, l.rows)
	for i := from; i < to; i++ {
		lines = append(lines, drawn[i]...)
	}
	return fill(lines, l.rows), len(rows) - to
}

// row returns one check with its title and a verdict for each side. A dotted line marks the whole selected row.
func (p *stepPage) row(c *steps.Check, at steps.Cell, l layout) []string {
	a, here := p.a, c.Name == at.Check
	mark, lines := "   ", p.title(c, l)
	room := max(1, l.main-4-l.cell*len(p.shown()))
	if here {
		mark = " " + a.t.accent.Render("▸") + " "
	}
	for i := range lines {
		if here {
			lines[i] = a.t.title.Render(lines[i])
		}
	}
	line, blank := mark+lines[0], room-width(lines[0])+1
	for _, side := range p.shown() {
		if !c.On.Covers(side) {
			blank += l.cell
			continue
		}
		cell := steps.Cell{Step: p.step().Name, Check: c.Name, Side: side}
		verdict := p.verdictCell(cell, here && side == at.Side, l.cell)
		line += a.gap(blank, here) + verdict
		blank = l.cell - width(verdict)
	}
	line += strings.Repeat(" ", max(0, blank))
	out := []string{line}
	for _, l := range lines[1:] {
		out = append(out, "   "+l)
	}
	return out
}

// gap returns n columns without text, with a dotted line in the selected row.
func (a *app) gap(n int, selected bool) string {
	if !selected || n < 3 {
		return strings.Repeat(" ", max(0, n))
	}
	return " " + a.t.faint.Render(strings.Repeat("┄", n-2)) + " "
}

// verdictCell returns a verdict as a glyph and a word of at most w columns. The selected verdict is in reverse video.
func (p *stepPage) verdictCell(c steps.Cell, selected bool, w int) string {
	a, state, k := p.a, p.a.live.Board.State(c), p.a.live.Look(c)
	sign := state.Glyph()
	if k.Asked || k.Began.IsZero() {
		sign = a.spin()
	}
	word := clip(p.word(c), w-3)
	ink := a.t.ink(state)
	switch {
	case selected:
		return ink.Reverse(true).Render(sign + " " + word)
	case state != engine.OK && state != engine.InProgress && state != engine.Checking:
		return ink.Render(sign + " " + word)
	}
	return ink.Render(sign) + " " + word
}

// totals returns the line with the counts of the whole guide or the current notice. Its right end shows how current the
// verdicts of this step are.
func (p *stepPage) totals() string {
	a := p.a
	right := a.t.faint.Render(a.live.Follows(p.step().Name)) + " "
	if p.asked != nothing {
		right = a.t.accent.Render(a.spin()) + " planning the changes "
	}
	if a.notice != "" {
		return spread(" "+a.notice, right, a.w)
	}
	n := a.live.Board.Count("")
	tally := p.tally(n)
	if strip := p.strip(); !a.wide() && width(strip+right)+4 <= a.w { // the strip matters more than the counts
		tally = strip + "  " + p.tally(n, p.uncounted(n, a.w-width(strip+right)-6)...)
	}
	return spread(" "+tally, right, a.w)
}

// uncounted returns the states that the counts leave out to fit into w columns. The first are those that need no
// attention.
func (p *stepPage) uncounted(n engine.Counts, w int) []engine.State {
	dropped := []engine.State{
		engine.Skipped, engine.Later, engine.OK, engine.Checking, engine.InProgress, engine.Warning, engine.ToDo,
		engine.Unknown, engine.Failed,
	}
	for i := range dropped {
		if width(p.tally(n, dropped[:i]...)) <= w {
			return dropped[:i]
		}
	}
	return dropped
}

// strip returns the state of every step in a few columns, for screens without a list of steps.
func (p *stepPage) strip() string {
	a := p.a
	var parts []string
	for i := range p.guide().Steps {
		state := a.live.State(p.guide().Steps[i].Name)
		number := fmt.Sprint(i + 1)
		if i == p.at {
			number = a.t.selected.Render(number)
		}
		parts = append(parts, number+a.t.sign(state))
	}
	return strings.Join(parts, " ")
}

// tally returns the counts, except those of the states without. Those that need attention are in color.
func (p *stepPage) tally(n engine.Counts, without ...engine.State) string {
	var parts []string
	for _, one := range n.List() {
		if slices.Contains(without, one.State) {
			continue
		}
		switch part := one.String(); one.State {
		case engine.Failed, engine.Unknown, engine.Warning, engine.ToDo:
			parts = append(parts, p.a.t.ink(one.State).Render(part))
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " · ")
}

func (p *stepPage) foot() string {
	a, keys := p.a, p.a.k
	if p.typing() {
		return a.footer([]hint{{"enter", "keep"}, {"↑↓", "move"}, keys.Esc.as("show all")}, nil)
	}
	if a.run.asks() && a.run.Asked.Address() != "" {
		return a.footer(
			[]hint{keys.Copy.as("copy the address"), keys.Interrupt.as("stop"), {"↑↓", "move"}, keys.Log.hint()},
			[]hint{keys.Help.hint()},
		)
	}
	if a.run.busy() {
		return a.footer([]hint{keys.Interrupt.as("stop"), {"↑↓", "move"}, keys.Log.hint()}, []hint{keys.Help.hint()})
	}
	first := []hint{keys.Next.as(p.nextText())}
	if a.live.Appliable(p.step().Name) {
		first = append(first, keys.Apply.as(p.applyText(a.live.Changes(p.step().Name))), keys.Diff.hint())
	}
	if n := p.a.live.Elsewhere(p.step().Name); n > 0 {
		first = append(first, keys.Trouble.as(fmt.Sprintf("%d more wrong", n)))
	}
	if n := len(p.place().missing()); n > 0 {
		first = append([]hint{keys.Answers.as(steps.Plural(n, "answer") + " missing")}, first...)
	} else if len(p.step().Ask) > 0 {
		first = append(first, keys.Answers.hint())
	}
	if len(p.step().Actions) > 0 {
		first = append(first, keys.Undo.hint())
	}
	if p.at > 0 {
		first = append([]hint{keys.Back.hint()}, first...)
	}
	if r := a.run; r.visible() && r.failed() && !r.Plan.Undo && !r.deed.fixes && r.step() == "" {
		first = append([]hint{keys.Everything.as("continue")}, first...)
	}
	first, last := append(first, keys.Filter.hint()), []hint{keys.Help.hint(), keys.Quit.hint()}
	switch {
	case a.narrow() && a.w >= 50: // the steps are not visible otherwise
		last = append([]hint{keys.Steps.hint()}, last...)
	case !a.wide():
		first = append(first, keys.Map.hint(), keys.Steps.hint())
	default:
		first = append(first, keys.Map.hint())
	}
	return a.footer(append(first, keys.Again.hint(), keys.Log.hint()), last)
}

func (p *stepPage) nextText() string {
	if p.at+1 == len(p.guide().Steps) {
		return "summary"
	}
	return "next"
}

func (p *stepPage) applyText(n int) string {
	if n > 0 {
		return "apply " + steps.Plural(n, "change")
	}
	return "apply"
}
