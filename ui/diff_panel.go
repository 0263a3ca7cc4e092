package ui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// diffPanel shows a plan line by line. The user can jump from object to object.
type diffPanel struct {
	*pager
	plan *engine.Plan
	rest bool // include unchanged objects
	at   int  // the selected object
	made struct {
		w, above int
		rest     bool
		sheet    *sheet
	}
}

func (a *app) diffOf(title string, plan *engine.Plan) *diffPanel {
	d := &diffPanel{plan: plan, rest: plan.Undo}
	d.pager = a.pager(title, d.lines)
	d.pager.kind = "plan"
	d.pager.copy = func() string { return strings.Join(a.planText(plan), "\n") }
	d.pager.file = func() string { return strings.Join(append(a.planHead(plan), a.planText(plan)...), "\n") }
	d.pager.dress, d.pager.more = d.dress, d.pressed
	d.pager.hints = d.keys
	return d
}

func (d *diffPanel) keys() []hint {
	k := d.a.k
	var out []hint
	if len(d.sheet(d.a.w-2).starts) > 1 {
		out = append(out, k.Object.as("next object"))
	}
	if n := d.plan.Tally("")[steps.Leave]; n > 0 && !d.plan.Undo {
		text := "show unchanged"
		if d.rest {
			text = "only changes"
		}
		out = append(out, k.Rest.as(text))
	}
	return out
}

// sheet returns the plan formatted for w columns. It formats the plan again only if the width, the shown objects or the
// unmet prerequisites have changed.
func (d *diffPanel) sheet(w int) *sheet {
	if m := &d.made; m.sheet == nil || m.w != w || m.rest != d.rest || m.above != len(d.a.unmet(d.plan, w)) {
		s := &sheet{a: d.a, plan: d.plan, w: w, diffs: true, rest: d.rest}
		s.add(d.a.totals(d.plan, w)...)
		above := len(s.lines)
		s.write()
		if above > 0 && len(s.lines) > above {
			s.lines = slices.Insert(s.lines, above, "")
			for i := range s.starts {
				s.starts[i]++
			}
		}
		m.w, m.rest, m.sheet, m.above = w, d.rest, s, len(d.a.unmet(d.plan, w))
	}
	return d.made.sheet
}

func (d *diffPanel) lines(w int) []string { return d.sheet(w).lines }

func (d *diffPanel) pressed(k tea.KeyMsg) tea.Cmd {
	starts := d.sheet(max(1, d.a.w-2)).starts
	keys := d.a.k
	switch {
	case key.Matches(k, keys.Object.Binding) && d.at+1 < len(starts):
		d.to(d.at + 1)
	case key.Matches(k, keys.Object.Binding):
		d.a.notice = "this is the last object"
	case key.Matches(k, keys.ObjBack.Binding) && d.at > 0:
		d.to(d.at - 1)
	case key.Matches(k, keys.ObjBack.Binding):
		d.a.notice = "this is the first object"
	case key.Matches(k, keys.Rest.Binding) && d.plan.Undo:
		d.a.notice = "unchanged objects are shown already"
	case key.Matches(k, keys.Rest.Binding):
		d.rest, d.at, d.from = !d.rest, 0, 0
	}
	return nil
}

// to selects an object and scrolls to it.
func (d *diffPanel) to(object int) {
	starts := d.sheet(max(1, d.a.w-2)).starts
	d.at = object
	line := starts[object]
	if object == 0 || (line > 1 && starts[object-1] < line-3) {
		line -= 2 // include the title of its action
	}
	d.bring(line)
}

// dress marks the selected object and returns its position among all objects. If the selected object is not visible,
// dress first selects a visible one.
func (d *diffPanel) dress(shown []string, from int) string {
	starts := d.sheet(max(1, d.a.w-2)).starts
	if len(starts) == 0 {
		return ""
	}
	d.at = min(d.at, len(starts)-1)
	end := from + len(shown)
	ends := func(i int) int {
		if i+1 < len(starts) {
			return starts[i+1]
		}
		return len(d.sheet(max(1, d.a.w-2)).lines)
	}
	for d.at > 0 && starts[d.at] >= end {
		d.at--
	}
	for d.at+1 < len(starts) && ends(d.at) <= from {
		d.at++
	}
	if i := starts[d.at] - from; i >= 0 && i < len(shown) && len(starts) > 1 {
		shown[i] = d.a.t.accent.Render("▸") + strings.TrimPrefix(shown[i], " ")
	}
	return fmt.Sprintf("object %d of %d", d.at+1, len(starts))
}

// totals describes how much a plan changes on each side and in total. It also mentions masked secret values.
func (a *app) totals(plan *engine.Plan, w int) []string {
	guide := a.live.Guide()
	rows := [][2]string{}
	for _, side := range steps.Sides {
		if t := amount(plan, side); t != "" {
			rows = append(rows, [2]string{guide.Sides[side].Name, t})
		}
	}
	if len(rows) > 1 {
		rows = append(rows, [2]string{"total", amount(plan, "")})
	}
	column := 0
	for _, r := range rows {
		column = max(column, width(r[0]))
	}
	var out []string
	for _, r := range rows {
		out = append(out, hang(pad(r[0], column)+"  ", wrap(r[1], max(1, w-column-2)))...)
	}
	if n := countMasked(plan); n > 0 {
		text := steps.Plural(n, "secret value") + " masked: shown as (hidden) here, in copies and in files"
		if n > 1 {
			text = steps.Plural(n, "secret value") + " masked: shown as (hidden) here, in copies and in files"
		}
		out = append(out, faint(a.t, wrap(text, w))...)
	}
	return out
}

// countMasked returns the number of masked secret values in a plan.
func countMasked(plan *engine.Plan) int {
	n := 0
	for _, act := range plan.Actions {
		for _, it := range act.Change.Items {
			if it.Verb.Changes() {
				n += strings.Count(it.Diff, "(hidden")
			}
		}
	}
	return n
}
