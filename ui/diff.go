package ui

import (
	"fmt"
	"strings"

	"carrick/steps"
)

// diffPanel shows what a plan would change, line by line.
func (a *app) diffPanel(title string, plan *steps.Plan) *pager {
	p := a.pager(title, func(w int) []string { return a.planLines(plan, true, w) })
	p.copy = func() string { return plainPlan(plan) }
	return p
}

// planLines is a plan, side by side and action by action; with diffs or, for a
// confirm, without them.
func (a *app) planLines(plan *steps.Plan, diffs bool, w int) []string {
	out := a.unmet(plan, w)
	for _, side := range steps.Sides {
		part := a.sidePlan(plan, side, diffs, w)
		if len(part) == 0 {
			continue
		}
		name := a.live.session.Guide().Sides[side].Name
		context := oneLine(a.live.session.End(side).Name)
		head := a.t.title.Render(name) + "  " + context
		tally := plan.Tally(side)
		if !diffs {
			delete(tally, steps.Leave)
		}
		if t := tallyText(tally); t != "" {
			head = spread(head, a.t.faint.Render(t), w)
		}
		out = append(out, head)
		out = append(out, part...)
	}
	if len(out) == 0 {
		return []string{a.t.good.Render("✓") + " nothing: all is as it should be"}
	}
	return out
}

func (a *app) sidePlan(plan *steps.Plan, side steps.Side, diffs bool, w int) []string {
	var out []string
	left := 0
	for _, act := range plan.Actions {
		if act.Side != side {
			continue
		}
		if brief := !diffs && !plan.Undo; brief {
			left += len(act.Change.Items)
			act.Change.Items = changing(act.Change.Items)
			left -= len(act.Change.Items)
			if act.Pending == "" && len(act.Change.Items) == 0 {
				continue
			}
		}
		out = append(out, "", "  "+oneLine(act.Title))
		if act.Pending != "" {
			out = append(out, hang("  "+a.t.accent.Render("◌")+" ", wrap("not known yet: "+oneLine(act.Pending), max(1, w-4)))...)
		}
		for _, it := range act.Change.Items {
			out = append(out, a.item(it, diffs, w)...)
		}
	}
	if out != nil {
		if left > 0 {
			out = append(out, "", a.t.faint.Render("  "+plural(left, "more thing")+" as it should be"))
		}
		out = append(out, "")
	}
	return out
}

// changing are the things of a plan that are changed.
func changing(items []steps.Item) []steps.Item {
	var out []steps.Item
	for _, it := range items {
		if it.Verb.Changes() {
			out = append(out, it)
		}
	}
	return out
}

// unmet says what must hold before the actions of a plan are done, does not
// hold now, and is not made so by the plan itself.
func (a *app) unmet(plan *steps.Plan, w int) []string {
	if plan.Undo {
		return nil
	}
	guide := a.live.session.Guide()
	var out []string
	said := map[steps.Cell]bool{}
	for _, act := range plan.Actions {
		for _, need := range guide.NeedsOf(act.Action, act.Side) {
			check, step := guide.Check(need.Check)
			root, _ := a.live.board.Cause(need)
			if said[need] || a.live.board.Verdict(need).Allows() || plan.Mends(guide, need) || plan.Mends(guide, root) {
				continue
			}
			said[need] = true
			text := fmt.Sprintf("this needs first, on the %s: %s (step %s)", guide.Sides[need.Side].Name, check.Title, step.Title)
			out = append(out, hang(a.t.warn.Render("!")+" ", wrap(text, max(1, w-2)))...)
		}
	}
	if out != nil {
		out = append(out, "")
	}
	return out
}

// item is one thing of a plan.
func (a *app) item(it steps.Item, diff bool, w int) []string {
	sign, ink := a.t.verb(it.Verb)
	head := "  " + ink.Render(sign) + " " + pad(string(it.Verb), 7) + " "
	what := oneLine(it.What)
	if it.Verb == steps.Leave {
		what = a.t.faint.Render(what)
	}
	out := hang(head, wrap(what, max(1, w-width(head))))
	indent := strings.Repeat(" ", 12)
	if it.Note != "" {
		for _, l := range wrap(oneLine(it.Note), max(1, w-12)) {
			out = append(out, indent+a.t.faint.Render(l))
		}
	}
	for _, c := range it.Conflicts {
		text := fmt.Sprintf("%s is set by %s", oneLine(c.Field), oneLine(c.Manager))
		out = append(out, hang(indent+a.t.warn.Render("!")+" ", wrap(text, max(1, w-14)))...)
	}
	if diff && it.Verb.Changes() {
		for _, l := range manyLines(it.Diff) {
			if it.Verb == steps.Create && strings.HasPrefix(l, "@@") {
				continue
			}
			out = append(out, a.diffLine("    "+clip(l, w-4)))
		}
	}
	return out
}

func (a *app) diffLine(l string) string {
	switch t := strings.TrimLeft(l, " "); {
	case strings.HasPrefix(t, "@@"):
		return a.t.faint.Render(l)
	case strings.HasPrefix(l, "    +"):
		return a.t.good.Render(l)
	case strings.HasPrefix(l, "    -"):
		return a.t.bad.Bold(false).Render(l)
	}
	return l
}

// tallyText counts the things of a plan by verb, in the order of the verbs.
func tallyText(n map[steps.Verb]int) string {
	var parts []string
	for _, v := range []steps.Verb{steps.Create, steps.Update, steps.Replace, steps.Release, steps.Delete, steps.Run, steps.Leave} {
		if n[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[v], v))
		}
	}
	return strings.Join(parts, " · ")
}

// plainPlan is a plan as text to be copied: diffs as they are.
func plainPlan(plan *steps.Plan) string {
	var b strings.Builder
	for _, act := range plan.Actions {
		for _, it := range act.Change.Items {
			if it.Verb.Changes() {
				fmt.Fprintf(&b, "# %s: %s %s\n%s", act.Side, it.Verb, it.What, it.Diff)
			}
		}
	}
	return b.String()
}

// errorPanel shows an error whole.
func (a *app) errorPanel(title string, err error) screen {
	return a.pager(title, func(w int) []string {
		var out []string
		for _, l := range manyLines(err.Error()) {
			out = append(out, wrap(l, w)...)
		}
		return out
	})
}
