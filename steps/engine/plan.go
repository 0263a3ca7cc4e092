package engine

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/inventory"
)

// Plan is what apply or undo would change, action by action.
type Plan struct {
	Undo    bool
	Actions []Planned

	whole bool
	scope Scope // only for an undo
}

// Planned is one action of a plan.
type Planned struct {
	Step, Action, Title string
	Side                steps.Side
	Change              steps.Change
	Pending             string // why the action can't be planned yet, or ""
	Refused             bool   // the action can't be planned because a read is forbidden

	follows bool              // the action was added by Scope.Follow
	ending  string            // the object of the action that is being deleted, such as "Namespace a"
	handed  bool              // the action can't be planned because the other side's file lacks a value
	unread  []permission.Rule // the forbidden reads on both sides
}

// Empty reports whether the plan changes nothing.
func (p *Plan) Empty() bool {
	for _, a := range p.Actions {
		if a.Pending != "" || a.changes() {
			return false
		}
	}
	return true
}

// Changes reports whether the plan changes something. It ignores pending actions, whose items are only an upper bound.
func (p *Plan) Changes() bool {
	return slices.ContainsFunc(p.Actions, func(a Planned) bool { return a.Pending == "" && a.changes() })
}

func (a *Planned) changes() bool {
	for _, it := range a.Change.Items {
		if it.Verb.Changes() {
			return true
		}
	}
	return false
}

// Tally counts the items of a plan by verb. If side is "", it counts both sides.
func (p *Plan) Tally(side steps.Side) map[steps.Verb]int {
	n := map[steps.Verb]int{}
	for _, a := range p.Actions {
		if side != "" && a.Side != side {
			continue
		}
		for _, it := range a.Change.Items {
			n[it.Verb]++
		}
	}
	return n
}

// Has reports whether the plan contains an item with verb v.
func (p *Plan) Has(v steps.Verb) bool { return p.Tally("")[v] > 0 }

// Conflicts returns the items with fields that another manager owns.
func (p *Plan) Conflicts() []steps.Item {
	var out []steps.Item
	for _, a := range p.Actions {
		for _, it := range a.Change.Items {
			if len(it.Conflicts) > 0 {
				out = append(out, it)
			}
		}
	}
	return out
}

// Scope selects what a plan covers. The zero value covers everything.
type Scope struct {
	Steps   []string   // names of steps
	Actions []string   // names of actions
	Side    steps.Side // one side only
	Follow  bool       // also the actions that must run again because of Actions; only for an apply
	// Found lists objects to undo although the inventory does not contain them. They are named as in the plan, such as
	// "Role renku/renku". They are identified only by their ownership labels, and no values are restored.
	Found []string
}

func (o Scope) covers(step *steps.Step, a *steps.Action, side steps.Side) bool {
	return (len(o.Steps) == 0 || slices.Contains(o.Steps, step.Name)) &&
		(len(o.Actions) == 0 || slices.Contains(o.Actions, a.Name)) &&
		(o.Side == "" || o.Side == side)
}

type job struct {
	step   *steps.Step
	action *steps.Action
	side   steps.Side
}

// jobs returns the actions that a scope covers and whose sides are available, in apply order.
func (s *Session) jobs(ctx context.Context, o Scope) []job {
	var out []job
	for i := range s.guide.Steps {
		step := &s.guide.Steps[i]
		for j := range step.Actions {
			a := &step.Actions[j]
			for _, side := range steps.Sides {
				if a.On.Covers(side) && o.covers(step, a, side) && !s.ends[side].absent() {
					out = append(out, job{step, a, side})
				}
			}
		}
	}
	return out
}

// Plan returns what apply would change. It changes nothing.
func (s *Session) Plan(ctx context.Context, o Scope) (*Plan, error) {
	ctx = tracked.WithLooks(ctx, s.looks)
	p := &Plan{whole: len(o.Steps)+len(o.Actions) == 0}
	for _, j := range s.jobs(ctx, o) {
		pl, ok, err := s.planJob(ctx, j)
		if err != nil {
			return p, err
		}
		if ok {
			p.Actions = append(p.Actions, pl)
		}
	}
	if o.Follow && p.Changes() {
		p.Actions = append(p.Actions, s.following(ctx, o)...)
	}
	if err := s.planNamespaces(ctx, p, o); err != nil {
		return p, err
	}
	p.inventoryOnce()
	return p, s.planCompletion(ctx, p)
}

func (s *Session) planJob(ctx context.Context, j job) (Planned, bool, error) {
	use := &usage{}
	env := s.env(ctx, j.side, use)
	env.Action = j.action.Name
	if !j.action.Wanted(j.step, env) {
		return Planned{}, false, nil
	}
	pl := Planned{Step: j.step.Name, Action: j.action.Name, Title: j.action.Title, Side: j.side}
	c, err := j.action.Plan(ctx, env)
	if err == nil {
		err = inventory.Plan(ctx, env, &c)
	}
	c.Permissions = append(c.Permissions, j.action.Reads...)
	pl.Change = c
	if use.failed != nil {
		err = use.failed
	} else if len(use.missing) > 0 {
		return pl, false, &steps.MissingError{Questions: use.missing}
	}
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		pl.Pending, pl.handed, pl.ending = absent.Error(), absent.PeerFile, absent.Ending
		return pl, true, nil
	}
	if apierrors.IsForbidden(err) { // reported later with all other missing permissions
		pl.Pending, pl.Refused = failure.Explain(err), true
		pl.unread = failure.Refused(err)
		return pl, true, nil
	}
	if err != nil {
		return pl, false, &ActionError{j.step.Name, j.action.Name, s.guide.Sides[j.side].Name, "plan", err}
	}
	return pl, true, nil
}

// PlanUndo returns what undo would revert, in undo order.
func (s *Session) PlanUndo(ctx context.Context, o Scope) (*Plan, error) {
	ctx = tracked.WithLooks(ctx, s.looks)
	p := &Plan{Undo: true, scope: o}
	known := false
	along := map[steps.Side][]string{}
	var away error
	for _, j := range s.undoOrder(s.jobs(ctx, o)) {
		env := s.env(ctx, j.side, &usage{})
		env.Action, env.Runtime.Along, env.Runtime.Found = j.action.Name, along[j.side], o.Found
		c, err := j.action.PlanUndo(ctx, env)
		if unreachable(err) { // the undo of the other side can still run
			pl := Planned{Step: j.step.Name, Action: j.action.Name, Title: j.action.Title, Side: j.side}
			pl.Pending = fmt.Sprintf(
				"%s; when the side responds, run: carrick undo LINK --side %s", failure.Explain(err), j.side,
			)
			p.Actions = append(p.Actions, pl)
			away = &ActionError{j.step.Name, j.action.Name, s.guide.Sides[j.side].Name, "plan the undo of", err}
			continue
		}
		known = known || !keeps(j.action.Doer)
		if err != nil {
			return p, &ActionError{j.step.Name, j.action.Name, s.guide.Sides[j.side].Name, "plan the undo of", err}
		}
		for side, what := range c.Along {
			along[side] = append(along[side], what...)
		}
		if len(c.Items) > 0 {
			p.Actions = append(
				p.Actions, Planned{Step: j.step.Name, Action: j.action.Name, Title: j.action.Title, Side: j.side, Change: c},
			)
		}
	}
	if !known {
		return p, away // no side answers
	}
	if err := s.planForget(ctx, o, p); err != nil {
		return p, err
	}
	if p.Empty() { // what an action keeps matters only if other actions undo something
		p.Actions = slices.DeleteFunc(p.Actions, func(a Planned) bool {
			action, _ := s.guide.Action(a.Action)
			return keeps(action.Doer)
		})
		p.dropByOthers()
	}
	return p, nil
}

// keeps reports whether an action has no undo. Planning the undo of such an action sends no request.
func keeps(d steps.Doer) bool {
	c, ok := d.(action.Call)
	return ok && c.Revert == nil
}

// unreachable reports whether an error means that a side does not answer.
func unreachable(err error) bool {
	return errors.As(err, new(*url.Error)) || errors.As(err, new(*failure.StaleError))
}

// undoOrder first returns the jobs in the guide's own undo order, and then the others in reverse apply order.
func (s *Session) undoOrder(jobs []job) []job {
	order := s.guide.Undo
	if slices.ContainsFunc(steps.Sides, func(side steps.Side) bool { return s.ends[side].absent() }) {
		first := s.guide.UndoAlone
		order = slices.Concat(
			first, slices.DeleteFunc(slices.Clone(order), func(name string) bool { return slices.Contains(first, name) }),
		)
	}
	var out []job
	for _, name := range order {
		for _, j := range jobs {
			if j.action.Name == name {
				out = append(out, j)
			}
		}
	}
	for i := len(jobs) - 1; i >= 0; i-- {
		if !slices.Contains(order, jobs[i].action.Name) {
			out = append(out, jobs[i])
		}
	}
	return out
}

// ActionError is an error from an action. It contains the action's place in the guide.
type ActionError struct {
	Step, Action, Side, Doing string
	Err                       error
}

func (e *ActionError) Error() string {
	return fmt.Sprintf("%s %s on the %s (step %s): %s", e.Doing, e.Action, e.Side, e.Step, e.Plain())
}

// Plain returns the cause in plain words.
func (e *ActionError) Plain() string {
	if conflict := (*action.ConflictError)(nil); errors.As(e.Err, &conflict) {
		return conflict.Error()
	}
	return failure.Explain(e.Err)
}

func (e *ActionError) Unwrap() error { return e.Err }
