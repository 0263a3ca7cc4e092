package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/inventory"
)

// forbiddenFor is how long a newly granted permission can take to become effective.
const forbiddenFor = 5 * time.Second

// StoppedError is returned if a run stopped part-way. Its changes are kept, and the same command resumes the run.
type StoppedError struct {
	Done int // number of changes made before the run stopped
	Err  error
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("stopped after %s: %v", steps.Plural(e.Done, "change"), e.Err)
}

func (e *StoppedError) Unwrap() error { return e.Err }

// Apply applies a confirmed plan, step by step. It plans each action again and stops if the plan differs from the
// confirmed one. It then applies the action and waits for the step's checks.
func (s *Session) Apply(ctx context.Context, p *Plan, o steps.ApplyOptions, say steps.Progress) (err error) {
	ctx = tracked.WithLooks(ctx, s.looks)
	if err := s.keepTaken(ctx); err != nil {
		return err
	}
	deeds, count := s.recording(say)
	alone := s.apart()
	defer func() {
		if failure.Silent(err) {
			return // the next run completes them
		}
		if fault := s.completeInventories(ctx, p, betweenWrites(err), count); err == nil {
			err = fault
		}
	}()
	for i, a := range p.Actions {
		var err error
		if !alone.putOff(ctx, a) {
			err = s.applyOne(ctx, p.Actions[i:], o, deeds.done == 0, count)
		}
		if err == nil {
			err = deeds.lost
		}
		if err != nil {
			return stopped(ctx, deeds.done, err)
		}
		last := i+1 == len(p.Actions) || p.Actions[i+1].Step != a.Step
		if last && s.changed(p, a.Step) {
			if err := s.settle(ctx, p, a.Step, alone, say); err != nil {
				return stopped(ctx, deeds.done, err)
			}
		}
	}
	return alone.over(ctx, deeds.done)
}

// betweenWrites reports whether a run has stopped before a write, so that the server has processed all writes.
func betweenWrites(err error) bool {
	return errors.As(err, new(*action.ConflictError)) || errors.As(err, new(*UnsettledError))
}

func stopped(ctx context.Context, done int, err error) error {
	if done == 0 && ctx.Err() == nil {
		return err
	}
	return &StoppedError{done, err}
}

func (s *Session) changed(p *Plan, step string) bool {
	for _, a := range p.Actions {
		if a.Step == step && (a.Pending != "" || a.changes()) {
			return true
		}
	}
	return false
}

// applyOne applies the first of the given actions. The other actions are the rest of the plan. One write adds the
// objects of the first action, and the known objects of the others, to the inventory.
func (s *Session) applyOne(
	ctx context.Context, all []Planned, o steps.ApplyOptions, untouched bool, say steps.Progress,
) error {
	a := all[0]
	action, step := s.guide.Action(a.Action)
	j := job{step, action, a.Side}
	if a.Pending != "" || a.changes() {
		if err := s.needsHold(ctx, j, untouched, say); err != nil {
			return err
		}
	}
	var now Planned
	var wanted bool
	err := waitOut(ctx, s.tagged(a, say), func() (err error) {
		now, wanted, err = s.planKnown(ctx, j, s.tagged(a, say))
		return err
	})
	if err != nil {
		return err
	}
	if !wanted || (now.Pending == "" && !now.changes()) {
		return nil // another run has already applied it
	}
	if now.Pending != "" {
		return &ActionError{a.Step, a.Action, s.guide.Sides[a.Side].Name, "apply", errors.New(now.Pending)}
	}
	if a.Pending == "" && !sameChange(a.Change, now.Change) {
		return &ActionError{a.Step, a.Action, s.guide.Sides[a.Side].Name, "apply", whyOther(now.Change)}
	}
	env := s.env(ctx, a.Side, &usage{})
	env.Action, env.Apply = a.Action, o
	var later []inventory.Planned
	for _, next := range all[1:] {
		if next.Side == a.Side {
			later = append(later, inventory.Planned{Action: next.Action, Items: next.Change.Items})
		}
	}
	err = waitOut(ctx, s.tagged(a, say), func() error {
		if err := inventory.EnterAll(ctx, env, now.Change.Items, later, s.tagged(a, say)); err != nil {
			return err
		}
		return action.Do(ctx, env, s.tagged(a, say))
	})
	s.Forget() // access reviews, for example, can have different results now
	if err != nil {
		return &ActionError{a.Step, a.Action, s.guide.Sides[a.Side].Name, "apply", err}
	}
	return nil
}

func (s *Session) tagged(a Planned, say steps.Progress) steps.Progress {
	return func(e steps.Event) {
		e.Step, e.Action, e.Side = a.Step, a.Action, a.Side
		if say != nil {
			say(e)
		}
	}
}

var errOtherPlan = errors.New("the cluster changed since you confirmed; review the diff again")

// whyOther returns why a plan differs from the confirmed one. If a read or a change is forbidden, the plan is
// incomplete, so whyOther returns that reason instead.
func whyOther(now steps.Change) error {
	for _, it := range now.Items {
		if it.Refused {
			return fmt.Errorf("%s: %s", it.What, it.Note)
		}
	}
	return errOtherPlan
}

// sameChange reports whether apply can still execute a confirmed plan of an action. Every change of the new plan must
// be in the confirmed plan. Changes that are no longer necessary, and objects that are already being deleted, don't
// count.
func sameChange(confirmed, now steps.Change) bool {
	type one struct{ what, hash string }
	old := map[one]bool{}
	for _, it := range confirmed.Items {
		old[one{it.What, it.Hash}] = it.Verb.Changes()
	}
	for _, it := range now.Items {
		if it.Verb.Changes() && !it.Creates && !it.Terminating && !old[one{it.What, it.Hash}] {
			return false
		}
	}
	return true
}

// needsHold waits for the checks that an action needs. It returns an error if a check does not pass in time. If nothing
// has been changed yet, it does not wait for checks that fail or are skipped.
func (s *Session) needsHold(ctx context.Context, j job, untouched bool, say steps.Progress) error {
	for _, c := range s.guide.CellsNamed(j.action.Needs, j.side) {
		r, asked, err := s.lookFirst(ctx, j, c, say, func(r steps.Result) bool {
			return r.Allows() || (untouched && (r.Status == steps.Fail || r.Status == steps.Skip))
		})
		if err != nil {
			return err
		}
		if asked && !r.Allows() {
			check, _ := s.guide.Check(c.Check)
			return &ActionError{
				j.step.Name, j.action.Name, s.guide.Sides[j.side].Name, "apply",
				fmt.Errorf("requires %q, but its status is %s: %s", check.Title, r.Status, r.Found),
			}
		}
	}
	for _, c := range s.guide.CellsNamed(j.action.First, j.side) {
		if _, _, err := s.lookFirst(ctx, j, c, say, func(steps.Result) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// lookFirst probes a check until good returns true. It reports the finding if nothing else would show it. If the check
// is not applicable, asked is false.
func (s *Session) lookFirst(
	ctx context.Context, j job, c steps.Cell, say steps.Progress, good func(steps.Result) bool,
) (r steps.Result, asked bool, err error) {
	check, step := s.guide.Check(c.Check)
	if applies, _ := steps.Applies(s.guide, step, check, s.env(ctx, c.Side, &usage{})); !applies {
		return steps.Result{}, false, nil
	}
	who := s.guide.Sides[c.Side].Name
	say.Say("%s: checking: %s", who, check.Title)
	if r, err = s.until(ctx, c, good); err != nil {
		return r, true, err
	}
	if r.Status == steps.Warn || slices.Contains(j.action.First, c.Check) {
		say.Say("%s: %s: %s: %s", who, check.Title, r.Status, r.Found)
	}
	return r, true, nil
}

// toDo returns a verdict's fix as the end of a sentence. If the only fix is the apply that just ran, it returns "".
func (s *Session) toDo(ctx context.Context, check *steps.Check, side steps.Side, r steps.Result) string {
	mend := s.fixCommand(check, s.env(ctx, side, &usage{}), r)
	if r.Fix == "" || r.Fix == mend || mend != "" && strings.HasPrefix(r.Fix, mend+" --take-over") {
		return ""
	}
	return "; to fix it: " + r.Fix
}

// UnsettledError is returned by an apply if all changes of a step are done and one of its checks still fails.
type UnsettledError struct{ why string }

func (e *UnsettledError) Error() string { return e.why }

// settle waits for the checks of a step that a changed action fixes. It returns an error if a check does not pass in
// time.
func (s *Session) settle(ctx context.Context, p *Plan, step string, alone *apart, say steps.Progress) error {
	st := s.guide.Step(step)
	for i := range st.Checks {
		check := &st.Checks[i]
		for _, side := range steps.Sides {
			if !check.On.Covers(side) || !p.changes(s.guide.FixingAction(check, side)) {
				continue
			}
			c := steps.Cell{Step: step, Check: check.Name, Side: side}
			if alone.leaves(ctx, c) {
				continue
			}
			r, err := s.settled(ctx, c)
			if err != nil {
				return err
			}
			say.Say("%s: %s: %s: %s", s.guide.Sides[side].Name, check.Title, r.Status, r.Found)
			if !r.Status.Holds() && r.Status != steps.Skip {
				return &UnsettledError{fmt.Sprintf(
					"step %s: %q on the %s still fails after all changes (%s): %s%s", step, check.Title,
					s.guide.Sides[side].Name, r.Status, r.Found, s.toDo(ctx, check, side, r),
				)}
			}
		}
	}
	return nil
}

// settled waits until a cell passes or is skipped. A skip can result from a probe before the latest changes. It
// therefore counts only after settled has waited for each need of the cell to pass, for at most knownWithin each.
func (s *Session) settled(ctx context.Context, c steps.Cell) (steps.Result, error) {
	holds := func(r steps.Result) bool { return r.Status.Holds() || r.Status == steps.Skip }
	r, err := s.until(ctx, c, holds)
	if err != nil || r.Status != steps.Skip || r.Found == steps.NotAsked {
		return r, err
	}
	for _, need := range s.guide.Needs(c) {
		short, cancel := context.WithTimeout(ctx, knownWithin)
		_, _ = s.until(short, need, steps.Result.Allows)
		cancel()
	}
	return s.until(ctx, c, holds)
}

// changes reports whether the plan contains changes by an action.
func (p *Plan) changes(action *steps.Action, _ *steps.Step) bool {
	for _, a := range p.Actions {
		if action != nil && a.Action == action.Name && (a.Pending != "" || a.changes()) {
			return true
		}
	}
	return false
}

// Undo carries out a plan from PlanUndo.
func (s *Session) Undo(ctx context.Context, p *Plan, say steps.Progress) error {
	ctx = tracked.WithLooks(ctx, s.looks)
	deeds, count := s.recording(say)
	var away []error
	for _, a := range p.Actions {
		if a.Pending != "" {
			away = append(away, fmt.Errorf("%s on the %s was not undone: %s", a.Action, s.guide.Sides[a.Side].Name, a.Pending))
			continue
		}
		action, _ := s.guide.Action(a.Action)
		env := s.env(ctx, a.Side, &usage{})
		env.Action, env.Runtime.Found = a.Action, p.scope.Found
		err := waitOut(ctx, s.tagged(a, say), func() error {
			now, err := action.PlanUndo(ctx, env)
			if err == nil && !sameChange(a.Change, now) {
				err = errOtherPlan
			}
			return err
		})
		if err == nil {
			err = waitOut(ctx, s.tagged(a, say), func() error { return action.Undo(ctx, env, s.tagged(a, count)) })
			s.Forget()
		}
		if err != nil {
			return stopped(ctx, deeds.done, &ActionError{a.Step, a.Action, s.guide.Sides[a.Side].Name, "undo", err})
		}
		if deeds.lost != nil {
			return stopped(ctx, deeds.done, deeds.lost)
		}
	}
	for _, side := range steps.Sides {
		if err := s.settleInventory(ctx, side, s.undone(ctx, p, side), nil, count); err != nil {
			return stopped(ctx, deeds.done, err)
		}
	}
	if deeds.lost != nil {
		return stopped(ctx, deeds.done, deeds.lost)
	}
	if len(away) > 0 {
		return &StoppedError{deeds.done, errors.Join(away...)}
	}
	return nil
}
