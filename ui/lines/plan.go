package lines

import (
	"fmt"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// sayPlan prints a plan by side and action, and returns the number of changes. If diffs is true, it also prints the
// diffs.
func (w *walk) sayPlan(p *engine.Plan, diffs bool) int {
	w.unmet(p)
	all := 0
	for _, side := range steps.Sides {
		n := model.ChangesOf(p, side)
		pending := slices.ContainsFunc(p.Actions, func(a engine.Planned) bool { return a.Side == side && a.Pending != "" })
		if n == 0 && p.Tally(side)[steps.Leave] == 0 && !pending {
			continue
		}
		all += n
		if n > 0 || p.Undo {
			w.out.sentence(
				"On the %s, %s: %s", w.role(side), w.live.Session.Endpoint(side).Name,
				steps.Plural(n, map[bool]string{false: "change", true: "resource"}[p.Undo]),
			)
		}
		left := 0
		for _, act := range p.Actions {
			if act.Side == side {
				left += w.planned(act, p.Undo, diffs)
			}
		}
		if left > 0 && n > 0 {
			w.out.sentence("Unchanged on the %s: %s", w.role(side), steps.Plural(left, "more resource"))
		}
	}
	if all == 0 && diffs {
		w.out.say("There is nothing to change.")
	}
	return all
}

// planned prints one action of a plan and returns the number of omitted items.
func (w *walk) planned(act engine.Planned, undo, diffs bool) (left int) {
	if act.Pending != "" {
		w.out.sentence("%s: not known yet: %s", act.Title, act.Pending)
	}
	said, last := false, ""
	for _, it := range act.Change.Items {
		if !it.Verb.Changes() && !undo {
			left++
			continue
		}
		if !said {
			said = true
			w.out.say("%s:", model.OneLine(act.Title))
		}
		note := it.Note
		if note == last {
			it.Note = "" // already printed for the previous item
		}
		last = note
		w.item(it, diffs)
	}
	return left
}

func (w *walk) item(it steps.Item, diff bool) {
	text := string(it.Verb) + " " + it.What
	if it.Note != "" {
		text += ": " + it.Note
	}
	w.out.sentence("%s", text)
	for _, c := range it.Conflicts {
		w.out.sentence("Field %s of %s is set by %s", c.Field, it.What, c.Manager)
	}
	if diff && it.Verb.Changes() && it.Diff != "" {
		w.out.raw(it.Diff)
	}
}

// unmet prints the unmet prerequisites of a plan's actions, except those that the plan itself satisfies.
func (w *walk) unmet(p *engine.Plan) {
	for _, need := range w.live.Unmet(p) {
		check, step := w.guide().Check(need.Check)
		w.out.sentence("A check on the %s, in step %s, must pass first: %s", w.role(need.Side), step.Title, check.Title)
	}
}

// printMissing prints the missing permissions, and manifests that grant them.
func (w *walk) printMissing(p *engine.Plan, lacking engine.MissingPermissions) {
	w.out.say("You do not have the permissions for these changes. Nothing was changed.")
	name := "carrick-" + w.live.Session.Link().Name()
	for _, side := range steps.Sides {
		lack, missing := lacking[side]
		if !missing {
			continue
		}
		w.out.sentence("Missing on the %s, %s:", w.role(side), w.live.Session.Endpoint(side).Name)
		for _, r := range lack.Words() {
			w.out.sentence("%s", r)
		}
		if lack.Partly {
			w.out.say("Once these permissions are granted, carrick can check for others.")
		}
		w.out.say("An admin of that cluster can apply these manifests and bind the role to you:")
		w.out.raw(steps.Grant(name, lack.Needed, p.NewNamespaces(side)...))
	}
}

// place names a step and a side, such as "step 4 of 8, provider: ".
func (w *walk) place(step string, side steps.Side) string {
	var parts []string
	for i := range w.guide().Steps {
		if w.guide().Steps[i].Name == step {
			parts = append(parts, fmt.Sprintf("step %d of %d", i+1, len(w.guide().Steps)))
		}
	}
	if role := w.role(side); role != "" {
		parts = append(parts, role)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + ": "
}
