package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/inventory"
)

// forbiddenFor is how long a right that was just granted may take to count.
const forbiddenFor = 5 * time.Second

// settleWithin is how long apply waits for the checks that an action mends; for
// one that says that it waits, as long as that check allows.
const settleWithin = 60 * time.Second

// knownWithin is how long the plan of an action may wait for what is not there
// yet, once the actions before it are done.
const knownWithin = 10 * time.Second

// StoppedError says that a run stopped part-way: what was done stays, and
// doing it again goes on from there.
type StoppedError struct {
	Done int // things changed before it stopped
	Err  error
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("stopped after %d changes: %v", e.Done, e.Err)
}

func (e *StoppedError) Unwrap() error { return e.Err }

// Apply does a plan that was confirmed, step by step: plan again, stop if it
// is not the one that was confirmed, do, wait for the step's checks.
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
		if fault := s.completeInventories(ctx, p, count); err == nil {
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

// applyOne does the first of some actions.
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
		now, wanted, err = s.planKnown(ctx, j)
		return err
	})
	if err != nil {
		return err
	}
	if !wanted || (now.Pending == "" && !now.changes()) {
		return nil // has come about meanwhile
	}
	if now.Pending != "" {
		return &ActionError{a.Step, a.Action, s.guide.Sides[a.Side].Name, "do", errors.New(now.Pending)}
	}
	if a.Pending == "" && !sameChange(a.Change, now.Change) {
		return &ActionError{a.Step, a.Action, s.guide.Sides[a.Side].Name, "do", whyOther(now.Change)}
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
	s.Forget() // access reviews and the like may answer otherwise now
	if err != nil {
		return &ActionError{a.Step, a.Action, s.guide.Sides[a.Side].Name, "do", err}
	}
	return nil
}

// planKnown plans a job when its turn has come. What was made just before may not
// have been seen yet by what it leans on, so for a while it waits for that.
func (s *Session) planKnown(ctx context.Context, j job) (Planned, bool, error) {
	short, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	for {
		t := Trace{at: time.Now()}
		var traced context.Context
		traced, t.reads = tracked.WithTrace(ctx)
		now, wanted, err := s.planJob(traced, j)
		if err != nil || !wanted || now.Pending == "" || now.Refused || s.Changed(short, t) != nil {
			return now, wanted, err
		}
	}
}

func (s *Session) tagged(a Planned, say steps.Progress) steps.Progress {
	return func(e steps.Event) {
		e.Step, e.Action, e.Side = a.Step, a.Action, a.Side
		if say != nil {
			say(e)
		}
	}
}

var errOtherPlan = errors.New("what it would change is no longer what was confirmed, because the cluster has changed " +
	"meanwhile; look at the diff again")

// whyOther says why a plan is not the one that was confirmed: where something
// may not be read or done any more, nothing is known of what has changed.
func whyOther(now steps.Change) error {
	for _, it := range now.Items {
		if it.Refused {
			return fmt.Errorf("%s: %s", it.What, it.Note)
		}
	}
	return errOtherPlan
}

// sameChange tells whether two plans of an action are one. What has come about
// meanwhile is no difference, nor is what goes by itself; what is new or other is,
// and what was to be left.
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

// needsHold waits for the checks that an action needs; it stops on one that does
// not come to hold. Where nothing was changed yet there is nothing to wait for:
// a failure or a skip is one at once.
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
				j.step.Name, j.action.Name, s.guide.Sides[j.side].Name, "do",
				fmt.Errorf("needs %q first, and that does not hold (%s): %s", check.Title, r.Status, r.Found),
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

// lookFirst looks at a check until good says so, and tells what it found where
// nobody would see that otherwise. asked is false where the answers make the
// check needless.
func (s *Session) lookFirst(
	ctx context.Context, j job, c steps.Cell, say steps.Progress, good func(steps.Result) bool,
) (r steps.Result, asked bool, err error) {
	check, step := s.guide.Check(c.Check)
	if applies, _ := steps.Applies(s.guide, step, check, s.env(ctx, c.Side, &usage{})); !applies {
		return steps.Result{}, false, nil
	}
	who := s.guide.Sides[c.Side].Name
	say.Say("%s: looking whether %s", who, check.Title)
	if r, err = s.until(ctx, c, good); err != nil {
		return r, true, err
	}
	if r.Status == steps.Warn || slices.Contains(j.action.First, c.Check) {
		say.Say("%s: %s: %s: %s", who, check.Title, r.Status, r.Found)
	}
	return r, true, nil
}

// toDo is a verdict's fix as the end of a sentence; "": it has none but to apply
// what was just applied.
func (s *Session) toDo(ctx context.Context, check *steps.Check, side steps.Side, r steps.Result) string {
	mend := s.mendFix(check, s.env(ctx, side, &usage{}), r)
	if r.Fix == "" || r.Fix == mend || mend != "" && strings.HasPrefix(r.Fix, mend+" --take-over") {
		return ""
	}
	return "; what to do: " + r.Fix
}

// settle waits until the checks that a step's changed actions mend say that
// they hold; one that does not stops the run.
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
				return fmt.Errorf(
					"step %s: %q does not hold on the %s side although all was done (%s): %s%s", step, check.Title,
					s.guide.Sides[side].Name, r.Status, r.Found, s.toDo(ctx, check, side, r),
				)
			}
		}
	}
	return nil
}

// settled waits for a cell to hold or to be a skip. A skip may be that of a look
// which has not seen yet what was made a moment ago: it counts once what the cell
// leans on holds, or did not come to in a while.
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

// changes tells whether the plan changes something by that action.
func (p *Plan) changes(action *steps.Action, _ *steps.Step) bool {
	for _, a := range p.Actions {
		if action != nil && a.Action == action.Name && (a.Pending != "" || a.changes()) {
			return true
		}
	}
	return false
}

// until probes a cell until good says so, at most settleWithin, or while it is
// waiting as long as its check allows; then the last result stands. The error is
// ctx's alone.
func (s *Session) until(ctx context.Context, c steps.Cell, good func(steps.Result) bool) (steps.Result, error) {
	check, _ := s.guide.Check(c.Check)
	began := time.Now()
	short, cancel := context.WithDeadline(ctx, began.Add(max(settleWithin, check.Timeout)))
	defer cancel()
	var last steps.Result
	for {
		r, t := s.Probe(short, c)
		if short.Err() != nil && last.Status != steps.Pending {
			return last, ctx.Err() // cut short, the look says nothing
		}
		if last = r; good(r) || short.Err() != nil {
			return r, ctx.Err()
		}
		if apierrors.IsForbidden(r.Err) && time.Since(began) > forbiddenFor {
			return r, nil // time alone does not grant it
		}
		due := began.Add(settleWithin)
		if r.Status == steps.Waiting {
			due = began.Add(max(settleWithin, check.Timeout))
		}
		if s.changedBy(short, t, due) != nil {
			return r, ctx.Err()
		}
	}
}

// changedBy is Changed, and an error when due comes first.
func (s *Session) changedBy(ctx context.Context, t Trace, due time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	return s.Changed(ctx, t)
}

// Undo takes back what a plan of PlanUndo says.
func (s *Session) Undo(ctx context.Context, p *Plan, say steps.Progress) error {
	ctx = tracked.WithLooks(ctx, s.looks)
	deeds, count := s.recording(say)
	var away []error
	for _, a := range p.Actions {
		if a.Pending != "" {
			away = append(away, fmt.Errorf("%s on the %s is left: %s", a.Action, s.guide.Sides[a.Side].Name, a.Pending))
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
		if err := s.settleInventory(ctx, side, s.undone(ctx, p, side), false, count); err != nil {
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
