package ui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// sheet formats a plan as lines, grouped by side, action and object.
type sheet struct {
	a     *app
	plan  *engine.Plan
	w     int
	diffs bool // include line diffs
	rest  bool // include unchanged objects

	lines  []string
	starts []int // first line of each object
}

// planLines formats a plan without its diffs, for a confirmation.
func (a *app) planLines(plan *engine.Plan, w int) []string {
	s := &sheet{a: a, plan: plan, w: w, rest: plan.Undo}
	s.write()
	return s.lines
}

func (s *sheet) write() {
	s.add(s.a.unmet(s.plan, s.w)...)
	for _, side := range steps.Sides {
		s.side(side)
	}
	if len(s.lines) == 0 || (len(s.starts) == 0 && s.plan.Empty() && !s.plan.Undo && !s.rest) {
		s.add(s.a.t.good.Render("✓") + " nothing would change")
	}
}

func (s *sheet) add(lines ...string) { s.lines = append(s.lines, lines...) }

func (s *sheet) side(side steps.Side) {
	a := s.a
	var acts []engine.Planned
	left := 0
	for _, act := range s.plan.Actions {
		if act.Side != side {
			continue
		}
		if !s.rest {
			left += len(act.Change.Items)
			act.Change.Items = model.ChangingItems(act.Change.Items)
			left -= len(act.Change.Items)
		}
		if act.Pending != "" || len(act.Change.Items) > 0 {
			acts = append(acts, act)
		}
	}
	if len(acts) == 0 && (left == 0 || !s.diffs) {
		return
	}
	head := a.t.title.Render(a.live.Guide().Sides[side].Name) + "  " + oneLine(a.live.Session.Endpoint(side).Name)
	tally := s.plan.Tally(side)
	delete(tally, steps.Leave)
	s.add(spread(head, a.t.faint.Render(tallyText(tally)), s.w))
	for _, act := range acts {
		s.action(act)
	}
	if left > 0 {
		text := steps.Plural(left, "more resource") + " unchanged"
		if left > 1 {
			text = steps.Plural(left, "more resource") + " unchanged"
		}
		if s.diffs {
			text += "; " + a.k.Rest.hint().key + " shows them"
		}
		s.add("")
		s.add(hang("  ", faint(a.t, wrap(text, max(1, s.w-2))))...)
	}
	s.add("")
}

func (s *sheet) action(act engine.Planned) {
	a := s.a
	s.add("")
	s.add(hang("  ", wrap(oneLine(act.Title), max(1, s.w-2)))...)
	if act.Pending != "" {
		word := "not known yet: "
		switch {
		case s.plan.Undo:
			word = "stays: "
		case act.Refused:
			word = "unknown: "
		}
		s.starts = append(s.starts, len(s.lines))
		s.add(hang("  "+a.t.accent.Render("◌")+" ", wrap(word+oneLine(act.Pending), max(1, s.w-4)))...)
	}
	for _, it := range act.Change.Items {
		s.starts = append(s.starts, len(s.lines))
		s.add(a.item(it, s.diffs, s.w)...)
	}
}

func faint(t theme, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = t.faint.Render(l)
	}
	return out
}

// unmet lists the unmet prerequisites of a plan's actions, except those that the plan itself satisfies.
func (a *app) unmet(plan *engine.Plan, w int) []string {
	var out []string
	for _, need := range a.live.Unmet(plan) {
		check, step := a.live.Guide().Check(need.Check)
		text := fmt.Sprintf(
			"a check on the %s side must pass first: %s (step %s)", a.live.Role(need.Side), check.Title, step.Title,
		)
		out = append(out, hang(a.t.warn.Render("!")+" ", wrap(text, max(1, w-2)))...)
	}
	if out != nil {
		out = append(out, "")
	}
	return out
}

func (a *app) item(it steps.Item, diff bool, w int) []string {
	sign, ink := a.t.verb(it.Verb)
	head := "  " + ink.Render(sign) + " " + pad(string(it.Verb), 7) + " "
	what := wrap(oneLine(it.What), max(1, w-width(head)))
	if it.Verb == steps.Leave {
		what = faint(a.t, what)
	}
	out := hang(head, what)
	indent := strings.Repeat(" ", 12)
	if it.Note != "" && it.Refused {
		out = append(out, hang(indent+a.t.warn.Render("!")+" ", wrap("not possible now: "+oneLine(it.Note), max(1, w-14)))...)
	} else if it.Note != "" {
		for _, l := range wrap(oneLine(it.Note), max(1, w-12)) {
			out = append(out, indent+a.t.faint.Render(l))
		}
	}
	for _, c := range it.Conflicts {
		text := fmt.Sprintf("%s is set by %s", oneLine(c.Field), oneLine(c.Manager))
		out = append(out, hang(indent+a.t.warn.Render("!")+" ", wrap(text, max(1, w-14)))...)
	}
	if it.Verb == steps.Update && !diff {
		out = append(out, a.gist(it.Diff, w)...)
	}
	if diff && it.Verb.Changes() && it.Diff != "" {
		for _, l := range manyLines(it.Diff) {
			if it.Verb == steps.Create && strings.HasPrefix(l, "@@") {
				continue
			}
			out = append(out, a.diffLine(l, w-4)...)
		}
	}
	return out
}

// gistLines is the maximum number of changed lines that are shown without a diff.
const gistLines = 4

// gist returns the changed lines of a diff without context. If there are too many, it returns their number.
func (a *app) gist(diff string, w int) []string {
	var out []string
	more, less := 0, 0
	for _, l := range manyLines(diff) {
		sign, text := a.t.good, ""
		switch {
		case strings.HasPrefix(l, "+"):
			more++
			text = "+ " + strings.TrimSpace(l[1:])
		case strings.HasPrefix(l, "-"):
			less++
			sign, text = a.t.bad.Bold(false), "- "+strings.TrimSpace(l[1:])
		default:
			continue
		}
		out = append(out, strings.Repeat(" ", 12)+sign.Render(clip(text, max(1, w-12))))
	}
	if len(out) > gistLines {
		return []string{
			strings.Repeat(" ", 12) +
				a.t.faint.Render(fmt.Sprintf("+%d -%d lines; %s shows them", more, less, a.k.Diff.hint().key)),
		}
	}
	return out
}

// diffLine formats a line of a diff. It wraps a long line. Each continuation begins with an ellipsis instead of + or -.
func (a *app) diffLine(l string, w int) []string {
	style := a.t.renderer.NewStyle()
	switch {
	case strings.HasPrefix(l, "@@"):
		style = a.t.faint
	case strings.HasPrefix(l, "+"):
		style = a.t.good
	case strings.HasPrefix(l, "-"):
		style = a.t.bad.Bold(false)
	}
	var out []string
	for i, part := range pieces(l, max(2, w), max(1, w-1)) {
		if i > 0 {
			part = "…" + part
		}
		out = append(out, "    "+style.Render(part))
	}
	return out
}

// pieces splits a line into parts. The first part is at most first columns wide, and the other parts are at most others
// columns wide. All spaces are kept.
func pieces(l string, first, others int) []string {
	var out []string
	for w := first; width(l) > w; w = others {
		part := ansi.Truncate(l, w, "")
		if part == "" {
			break
		}
		out = append(out, part)
		l = l[len(part):]
	}
	return append(out, l)
}

func tallyText(n map[steps.Verb]int) string {
	var parts []string
	for _, v := range []steps.Verb{steps.Create, steps.Update, steps.Replace, steps.Release, steps.Delete, steps.Run} {
		if n[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[v], v))
		}
	}
	switch n[steps.Leave] {
	case 0:
	case 1:
		parts = append(parts, "1 unchanged")
	default:
		parts = append(parts, fmt.Sprintf("%d unchanged", n[steps.Leave]))
	}
	return strings.Join(parts, " · ")
}

// amount describes how much a plan changes on a side, or on both sides if side is "". It counts the items by verb, and
// the actions whose changes are not known yet.
func amount(plan *engine.Plan, side steps.Side) string {
	text, pending := tallyText(plan.Tally(side)), 0
	for _, act := range plan.Actions {
		known := !plan.Undo && len(model.ChangingItems(act.Change.Items)) > 0 // counted in text already
		if act.Pending != "" && !known && (side == "" || act.Side == side) {
			pending++
		}
	}
	if pending == 0 {
		return text
	}
	word := "not known yet"
	if plan.Undo {
		word = "cannot be undone now"
	}
	return strings.TrimPrefix(fmt.Sprintf("%s · %d %s", text, pending, word), " · ")
}

// errorPanel returns a panel with the complete error.
func (a *app) errorPanel(title string, err error) screen {
	return a.pager(title, func(w int) []string {
		var out []string
		for _, l := range manyLines(err.Error()) {
			out = append(out, wrap(l, w)...)
		}
		return out
	})
}
