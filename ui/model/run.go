package model

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/engine"
)

// Address matches a web address in text, without trailing punctuation.
var Address = regexp.MustCompile(`https?://[^\s<>"']*[^\s<>"'.,;:!?)\]]`)

// Run is the progress of one apply or undo.
type Run struct {
	Plan    *engine.Plan
	Events  int    // number of changes, including those that the plan does not show
	Changed int    // number of changes that the plan shows
	Says    string // last message from the current action, unless the action has changed something since
	Asked   Asked

	parts []part
}

type part struct {
	Part
	done    bool
	counted bool // in Changed
	heard   bool // its action reported something
}

// Asked is a request from the current action to the user, such as to open an address or to type a code. It remains
// until the action continues.
type Asked struct {
	Lines  []string
	Person bool // the action explicitly asked the user

	action string
	said   map[string]bool // actions that explicitly asked; addresses in their other messages are no requests
}

// NewRun returns the run of a confirmed plan.
func NewRun(plan *engine.Plan) *Run {
	r := &Run{Plan: plan}
	for _, p := range partsOf(plan) {
		r.parts = append(r.parts, part{Part: p})
	}
	return r
}

// Heard records an event. It reports whether the event asks the user for something.
func (r *Run) Heard(e steps.Event) (asks bool) {
	e.Text = OneLine(e.Text)
	asks = r.Asked.heard(e)
	r.reach(e)
	switch {
	case e.Verb != "":
		r.Events++
		r.Says = ""
	case e.Action != "" && !asks: // an event without an action comes from a check, which the board shows
		r.Says = e.Text
	}
	return asks
}

func (q *Asked) heard(e steps.Event) bool {
	if q.said == nil {
		q.said = map[string]bool{}
	}
	if q.action != "" && (e.Verb != "" || e.Action != q.action) {
		*q = Asked{said: q.said}
	}
	if e.Asks {
		q.said[e.Action] = true
	}
	if e.Verb != "" || e.Action == "" || (!e.Asks && (q.said[e.Action] || !Address.MatchString(e.Text))) {
		return false
	}
	q.action = e.Action
	q.Person = q.Person || e.Asks
	q.Lines = append(q.Lines, e.Text)
	return true
}

// Address returns the address to open. If there are several, it returns the longest one, which includes the code.
func (q *Asked) Address() string {
	best := ""
	for _, l := range q.Lines {
		for _, found := range Address.FindAllString(l, -1) {
			if len(found) > len(best) {
				best = found
			}
		}
	}
	return best
}

// reach records that an action has reported an event. All earlier actions then count as complete.
func (r *Run) reach(e steps.Event) {
	of := func(p part) bool { return p.Act.Action == e.Action && p.Act.Side == e.Side }
	first := slices.IndexFunc(r.parts, of)
	if first < 0 {
		return
	}
	for i := range r.parts[:first] {
		r.parts[i].done = true
	}
	for i := first; i < len(r.parts) && of(r.parts[i]); i++ {
		r.parts[i].heard = true
	}
	if e.Verb == "" {
		return
	}
	for i := first; i < len(r.parts) && of(r.parts[i]); i++ {
		p := &r.parts[i]
		if p.What == "" || (p.What == e.What && !p.done) {
			p.done, p.counted = p.What != "", true
			r.Changed++
			return
		}
	}
}

// Succeeded records that the run has ended without an error. What the plan shows is then done, and counts as changed if
// its action reported anything, even in other words. An action that reported nothing found nothing to change, for example
// because another run had applied it. Of a pending action, only what it reported is done.
func (r *Run) Succeeded() {
	for i := range r.parts {
		p := &r.parts[i]
		if p.counted || p.Act.Pending != "" {
			continue
		}
		if p.done, p.counted = true, p.heard; p.heard {
			r.Changed++
		}
	}
}

// Ahead returns the parts that are not done yet.
func (r *Run) Ahead() []Part { return r.those(false) }

// Done returns the parts that are done.
func (r *Run) Done() []Part { return r.those(true) }

func (r *Run) those(done bool) []Part {
	var out []Part
	for _, p := range r.parts {
		if p.done == done {
			out = append(out, p.Part)
		}
	}
	return out
}

// Count returns the progress, such as "3 of 8". If actions are pending, it appends "or more", because a pending action
// can become several parts. If there are no parts, it returns "".
func (r *Run) Count() string {
	more := ""
	if !r.Plan.Undo && slices.ContainsFunc(r.Plan.Actions, func(a engine.Planned) bool { return a.Pending != "" }) {
		more = " or more"
	}
	if len(r.parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d%s", len(r.Done()), len(r.parts), more)
}

// Awaits returns the check that a run waits for. Either the finished actions should make it pass, or the next action
// requires it.
func (l *Live) Awaits(r *Run) (steps.Cell, bool) {
	if r.Plan.Undo {
		return steps.Cell{}, false
	}
	guide, ahead := l.Guide(), r.Ahead()
	for i := range guide.Steps {
		if len(ahead) > 0 && guide.Steps[i].Name == ahead[0].Act.Step {
			break
		}
		for _, c := range guide.CellsOf(i) {
			if s := l.Board.Verdict(c).Status; r.Plan.Fixes(guide, c) && !s.Holds() && s != steps.Skip {
				return c, true
			}
		}
	}
	if len(ahead) == 0 {
		return steps.Cell{}, false
	}
	for _, need := range guide.NeedsOf(ahead[0].Act.Action, ahead[0].Act.Side) {
		if !l.Board.Verdict(need).Allows() {
			return need, true
		}
	}
	return steps.Cell{}, false
}

// Fixed reports whether all checks that a run was supposed to fix pass now. If the run's error names the failed action,
// only the checks of that action count. Otherwise all checks of the plan count.
func (l *Live) Fixed(plan *engine.Plan, err error) bool {
	guide, failed, n := l.Guide(), &engine.ActionError{}, 0
	errors.As(err, &failed)
	for _, c := range guide.Cells() {
		check, _ := guide.Check(c.Check)
		act, _ := guide.FixingAction(check, c.Side)
		other := act != nil && failed.Action != "" && (act.Name != failed.Action || l.Role(c.Side) != failed.Side)
		if plan.Undo || other || !plan.Fixes(guide, c) {
			continue
		}
		if n++; !l.Board.Verdict(c).Status.Holds() {
			return false
		}
	}
	return n > 0
}

// Verb describes an event by its verb and object, such as "create Secret a/b". The text of a Run event already begins
// with a verb, such as "approve …".
func Verb(e steps.Event) string {
	if e.Verb == steps.Run {
		return strings.Replace(e.Text, string(steps.Run)+" ", "", 1)
	}
	return e.Text
}
