package model

import (
	"context"
	"slices"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

const planWithin = 30 * time.Second

// forecast is what applying a step would change, as last known.
type forecast struct {
	plan    *engine.Plan  // nil if unknown
	basis   engine.Counts // the counts of the step when the plan was requested
	pending bool          // the plan is being computed
}

// Planned is the result of a request for a plan. It contains the plan, or what prevents it.
type Planned struct {
	Plan    *engine.Plan
	Missing engine.MissingPermissions
	Signers []engine.Signer // the user must confirm these first; if there are any, Plan is nil
	Err     error
}

// Plan plans an apply or an undo and determines which permissions are missing. If signers of facts files are not
// confirmed yet, it returns them instead of a plan.
func (l *Live) Plan(ctx context.Context, scope engine.Scope, undo bool) (p Planned) {
	ctx, cancel := context.WithTimeout(ctx, planWithin)
	defer cancel()
	if p.Signers, p.Err = l.Session.Unconfirmed(ctx); p.Err != nil || len(p.Signers) > 0 {
		return p
	}
	if p = l.plan(ctx, scope, undo); p.Err == nil {
		p.Missing, p.Err = l.Session.MissingPermissions(ctx, p.Plan)
	}
	return p
}

// Show plans without checking permissions. The plan is for display only.
func (l *Live) Show(ctx context.Context, scope engine.Scope, undo bool) Planned {
	ctx, cancel := context.WithTimeout(ctx, planWithin)
	defer cancel()
	return l.plan(ctx, scope, undo)
}

func (l *Live) plan(ctx context.Context, scope engine.Scope, undo bool) (p Planned) {
	if undo {
		p.Plan, p.Err = l.Session.PlanUndo(ctx, scope)
	} else {
		p.Plan, p.Err = l.Session.Plan(ctx, scope)
	}
	if p.Err != nil {
		p.Plan = nil
	}
	return p
}

// ForecastDue reports whether the forecast of a step must be computed. This is the case if again is true, or if the
// check counts of the step have changed. If a computation is already pending, ForecastDue returns false. If it returns
// true, the forecast becomes pending and the caller must call Forecast.
func (l *Live) ForecastDue(step string, again bool) bool {
	basis := l.Board.Count(step)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.forecast(step)
	if s := l.Guide().Step(step); f.pending || len(s.Actions) == 0 || (!again && f.basis == basis) {
		return false
	}
	f.pending, f.basis = true, basis
	return true
}

// Forecast computes and records what applying a step would change. It also returns the plan or the error.
func (l *Live) Forecast(ctx context.Context, step string) Planned {
	p := l.Show(ctx, engine.Scope{Steps: []string{step}}, false)
	l.Know(step, p.Plan)
	return p
}

// Know records what applying a step would change. A nil plan means unknown.
func (l *Live) Know(step string, plan *engine.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.forecast(step)
	f.plan, f.pending = plan, false
}

// ForgetPlans drops all forecasts.
func (l *Live) ForgetPlans() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.plans {
		f.plan, f.basis = nil, engine.Counts{}
	}
}

// Known returns what applying a step would change, as last known. If nothing is known, plan is nil. While the plan is
// being computed, pending is true.
func (l *Live) Known(step string) (plan *engine.Plan, pending bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.forecast(step)
	return f.plan, f.pending
}

// forecast returns the forecast of a step and adds it if necessary. The caller must hold l.mu.
func (l *Live) forecast(step string) *forecast {
	if l.plans[step] == nil {
		l.plans[step] = &forecast{}
	}
	return l.plans[step]
}

// Changes returns how many items applying a step would change, as last known. If that is unknown, it returns -1.
func (l *Live) Changes(step string) int {
	plan, _ := l.Known(step)
	if plan == nil {
		return -1
	}
	return ChangesOf(plan, "")
}

// Appliable reports whether a step has something to apply, as far as known.
func (l *Live) Appliable(step string) bool {
	return len(l.Guide().Step(step).Actions) > 0 && l.Changes(step) != 0
}

// Part is one unit of the work in a plan. It is an item, or an action whose items are not known yet.
type Part struct {
	Act  *engine.Planned
	What string // "" if it is known only when the action runs
}

// partsOf returns the items that a plan changes, in order. A Helm release comes after the objects of its action,
// because the release is complete only when those objects are complete. An action without known items is one part.
func partsOf(plan *engine.Plan) []Part {
	var out []Part
	for i := range plan.Actions {
		act := &plan.Actions[i]
		items := ChangingItems(act.Change.Items)
		if act.Pending != "" && !plan.Undo && len(items) == 0 {
			out = append(out, Part{Act: act})
		}
		slices.SortStableFunc(items, func(x, y steps.Item) int { return rank(x) - rank(y) })
		for _, it := range items {
			out = append(out, Part{act, it.What})
		}
	}
	return out
}

// ChangesOf returns how many items a plan changes on a side. If side is "", it counts both sides.
func ChangesOf(plan *engine.Plan, side steps.Side) int {
	n := 0
	for _, p := range partsOf(plan) {
		if side == "" || p.Act.Side == side {
			n++
		}
	}
	return n
}

// ChangingItems returns the items whose verb changes something.
func ChangingItems(items []steps.Item) []steps.Item {
	return slices.DeleteFunc(slices.Clone(items), func(it steps.Item) bool { return !it.Verb.Changes() })
}

// Unmet returns the unmet prerequisites of a plan's actions, except those that the plan itself satisfies.
func (l *Live) Unmet(plan *engine.Plan) []steps.Cell {
	if plan.Undo {
		return nil
	}
	var out []steps.Cell
	guide := l.Guide()
	for _, act := range plan.Actions {
		for _, need := range guide.NeedsOf(act.Action, act.Side) {
			root, _ := l.Board.Cause(need)
			met := l.Board.Verdict(need).Allows() || plan.Fixes(guide, need) || plan.Fixes(guide, root)
			if !met && !slices.Contains(out, need) {
				out = append(out, need)
			}
		}
	}
	return out
}

// Managers returns the distinct managers in the conflicts of items.
func Managers(items []steps.Item) []string {
	var out []string
	for _, it := range items {
		for _, c := range it.Conflicts {
			if !slices.Contains(out, c.Manager) {
				out = append(out, c.Manager)
			}
		}
	}
	return out
}

// rank sorts Helm releases after other items.
func rank(it steps.Item) int {
	if strings.HasPrefix(it.What, "Release ") {
		return 1
	}
	return 0
}
