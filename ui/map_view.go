package ui

import (
	"fmt"
	"strings"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// spot is a place on the map: a row and one of its parts.
type spot struct {
	row  int // -1 selects nothing
	part mapPart
}

// mapPart is a part of a row of the map.
type mapPart int

const (
	localPart mapPart = iota
	arrowPart
	remotePart
)

// nowhere selects no part of the map.
var nowhere = spot{row: -1}

// part returns a part of a row.
func part(r model.MapRow, p mapPart) model.MapPart {
	switch p {
	case localPart:
		return r.Objects[steps.Local]
	case remotePart:
		return r.Objects[steps.Remote]
	}
	return r.Arrow
}

// mapOf draws both sides and what connects them. names contains the created objects by step and side, which are shown
// below the objects of the step. Below bothFrom columns, each step is a line without boxes. from and to limit the rows
// that are shown.
func (a *app) mapOf(rows []model.MapRow, at spot, w, from, to int, names objectNames) []string {
	if w < bothFrom-4 {
		return a.mapList(rows, at, w, from, to)
	}
	between := 24
	if w >= 100 {
		between = 30
	}
	box := (w - between) / 2
	pair := func(left, middle, right string) string { return left + pad(middle, w-2*box) + right }
	var ends [2][]string
	for i, side := range steps.Sides {
		ends[i] = a.boxTop(side, box)
	}
	out := []string{pair(ends[0][0], "", ends[1][0]), pair(ends[0][1], "", ends[1][1])}
	for i := from; i < to; i++ {
		r, here := rows[i], at.row == i
		var cells [2]string
		for k, side := range steps.Sides {
			p := mapPart(2 * k)
			cells[k] = a.object(r.Objects[side], here && at.part == p, box)
		}
		out = append(out, pair(cells[0], a.arrow(r, here && at.part == arrowPart, w-2*box), cells[1]))
		if left, right := names.of(i, steps.Local, box-8), names.of(i, steps.Remote, box-8); left+right != "" {
			out = append(out, pair(a.named(left, box), "", a.named(right, box)))
		}
	}
	bottom := "└" + strings.Repeat("─", box-2) + "┘"
	return append(out, a.t.faint.Render(pair(bottom, "", bottom)))
}

// boxTop returns the upper border of a side's box, with the names, and the line about its API server.
func (a *app) boxTop(side steps.Side, w int) []string {
	p, role := a.live.Liveness(side), a.live.Guide().Sides[side].Name
	name := clipName(oneLine(p.Name), max(0, w-width(role)-6))
	head := " " + a.t.title.Render(role) + " "
	if name != "" {
		head += name + " "
	}
	line := a.t.faint.Render("┌─") + head + a.t.faint.Render(strings.Repeat("─", max(0, w-3-width(head)))+"┐")
	text, sign := "", a.t.sign(engine.OK)
	switch {
	case p.Absent != "":
		text, sign = a.t.faint.Render(oneLine(p.Absent)), a.t.sign(engine.Skipped)
	case p.Trouble != "":
		text, sign = a.t.bad.Render(oneLine(p.Trouble)), a.t.sign(engine.Failed)
	case p.Name == "":
		text, sign = "", a.t.sign(engine.Checking)
	case p.Version == "":
		text = "files and commands"
	default:
		text = fmt.Sprintf("API %s, %d ms", oneLine(p.Version), max(1, p.Latency.Milliseconds()))
	}
	return []string{line, a.boxed(text, sign, w)}
}

// boxed returns a line of a box with a text and a symbol.
func (a *app) boxed(text, sign string, w int) string {
	bar := a.t.faint.Render("│")
	return bar + " " + pad(text, w-6) + " " + pad(sign, 1) + " " + bar
}

// object returns the line of an object in the box of its side.
func (a *app) object(p model.MapPart, selected bool, w int) string {
	if p.Label == "" {
		return a.boxed("", "", w)
	}
	if len(p.Cells) == 0 {
		return a.boxed(a.t.faint.Render(p.Label), "", w)
	}
	text := p.Label
	switch {
	case selected:
		text = a.t.selected.Render(pad(text, w-6))
	case p.State == engine.Off || p.State == engine.Later:
		text = a.t.faint.Render(text)
	}
	return a.boxed(text, a.t.sign(p.State), w)
}

// named returns the line below an object with what was created for it.
func (a *app) named(name string, w int) string { return a.boxed(a.t.faint.Render("  "+name), "", w) }

// arrow returns the arrow of a row in w columns, with the number and the name of its step.
func (a *app) arrow(r model.MapRow, selected bool, w int) string {
	if r.To == "" {
		return ""
	}
	ink := a.t.ink(r.Arrow.State)
	number := r.Step + 1
	label := clip(fmt.Sprintf("%d %s", number, r.Arrow.Label), w-8)
	line := shaft(r.Arrow.State)
	left, right := heads(r.To, line)
	rest := w - 2 - width(label) - 4
	before := rest / 2
	text := a.t.renderer.NewStyle()
	switch {
	case selected:
		text = a.t.selected
	case r.Arrow.State == engine.Off || r.Arrow.State == engine.Later:
		text = a.t.faint
	}
	left, right = left+strings.Repeat(line, before), strings.Repeat(line, rest-before)+right
	return ink.Render(left) + " " + text.Render(label) + " " + a.t.sign(r.Arrow.State) + " " + ink.Render(right)
}

// heads returns both ends of an arrow.
func heads(to steps.Side, line string) (left, right string) {
	left, right = line, line
	if to != steps.Remote {
		left = "◂"
	}
	if to != steps.Local {
		right = "▸"
	}
	return left, right
}

// shaft returns the character of an arrow. The line of what works is solid.
func shaft(s engine.State) string {
	switch s {
	case engine.OK, engine.Warning:
		return "─"
	case engine.Failed, engine.Unknown:
		return "╌"
	}
	return "┄"
}

// mapList is the map for a narrow screen, with a line per step.
func (a *app) mapList(rows []model.MapRow, at spot, w, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		r, here := rows[i], at.row == i
		mark := "  "
		if here {
			mark = a.t.accent.Render("▸") + " "
		}
		cell := func(p mapPart) string {
			one := part(r, p)
			if p == arrowPart && r.To == "" {
				return "     "
			}
			sign := " "
			if len(one.Cells) > 0 {
				sign = a.t.sign(one.State)
			}
			if here && at.part == p {
				sign = a.t.selected.Render(one.State.Glyph())
			}
			if p != arrowPart {
				return sign
			}
			ink, line := a.t.ink(one.State), shaft(one.State)
			left, right := heads(r.To, line)
			return ink.Render(left+line) + sign + ink.Render(line+right)
		}
		head := mark + cell(localPart) + " " + cell(arrowPart) + " " + cell(remotePart) + "  "
		title := fmt.Sprintf("%d %s", r.Step+1, a.live.Guide().Steps[r.Step].Title)
		out = append(out, clip(head+title, w))
	}
	return out
}

// objectsOf names the objects of a step on a side.
type objectsOf struct {
	step int
	side steps.Side
}

// objectNames contains the objects that the link has created.
type objectNames map[objectsOf][]string

// of returns the first object of a step on a side and the number of further ones in w columns, or "". It omits the kind
// if it does not fit.
func (n objectNames) of(step int, side steps.Side, w int) string {
	list := n[objectsOf{step, side}]
	if len(list) == 0 {
		return ""
	}
	text, more := oneLine(list[0]), ""
	if len(list) > 1 {
		more = fmt.Sprintf(" +%d", len(list)-1)
	}
	if _, name, ok := strings.Cut(text, " "); ok && width(text+more) > w {
		text = name
	}
	return clipName(text, w-width(more)) + more
}

// lines returns the number of lines that the names need.
func (n objectNames) lines(rows []model.MapRow) int {
	out := 0
	for _, r := range rows {
		if len(n[objectsOf{r.Step, steps.Local}])+len(n[objectsOf{r.Step, steps.Remote}]) > 0 {
			out++
		}
	}
	return out
}

// namesIn returns the objects that an undo plan would delete or revert.
func (a *app) namesIn(p *engine.Plan) objectNames {
	out := objectNames{}
	if p == nil {
		return out
	}
	for i, s := range a.live.Guide().Steps {
		for _, act := range p.Actions {
			if act.Step != s.Name {
				continue
			}
			for _, it := range act.Change.Items {
				if it.Verb.Changes() || it.Held || it.Left {
					k := objectsOf{i, act.Side}
					out[k] = append(out[k], it.What)
				}
			}
		}
	}
	return out
}
