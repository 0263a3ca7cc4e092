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

// Address is a web address inside a text; a full stop after it is none of it.
var Address = regexp.MustCompile(`https?://[^\s<>"']*[^\s<>"'.,;:!?)\]]`)

// Run is how far one use of Apply or Undo is.
type Run struct {
	Plan    *engine.Plan
	Events  int    // how often something was changed, also what no plan shows
	Changed int    // of what the plan shows
	Says    string // what the action in hand said last, unless it did something since
	Asked   Asked

	parts []part
}

type part struct {
	Part
	done bool
}

// Asked is what an action in hand wants from a person: an address to open, a
// code to type. It stays until the action goes on.
type Asked struct {
	Lines  []string
	Person bool // the action said itself that it waits for one

	action string
	said   map[string]bool // actions that said so: an address in other words of theirs asks for nothing
}

// NewRun is the run of a plan that was confirmed.
func NewRun(plan *engine.Plan) *Run {
	r := &Run{Plan: plan}
	for _, p := range Parts(plan) {
		r.parts = append(r.parts, part{Part: p})
	}
	return r
}

// Heard takes in what is being done, and reports whether that asks a person for
// something.
func (r *Run) Heard(e steps.Event) (asks bool) {
	e.Text = OneLine(e.Text)
	asks = r.Asked.heard(e)
	r.reach(e)
	switch {
	case e.Verb != "":
		r.Events++
		r.Says = ""
	case e.Action != "" && !asks: // the checks of the step speak for themselves
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

// Address is the one to open: of several the longest, which has the code in it.
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

// reach notes what was done, and that actions before it are over, whether or not
// they said so.
func (r *Run) reach(e steps.Event) {
	of := func(p part) bool { return p.Act.Action == e.Action && p.Act.Side == e.Side }
	first := slices.IndexFunc(r.parts, of)
	if first < 0 {
		return
	}
	for i := range r.parts[:first] {
		r.parts[i].done = true
	}
	if e.Verb == "" {
		return
	}
	for i := first; i < len(r.parts) && of(r.parts[i]); i++ {
		p := &r.parts[i]
		if p.What == "" || (p.What == e.What && !p.done) {
			p.done = p.What != ""
			r.Changed++
			return
		}
	}
}

// Ahead are the parts that are not done yet.
func (r *Run) Ahead() []Part { return r.those(false) }

// Done are the parts that are done.
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

// Count is how many parts are done, of how many: "3 of 8"; "": there are none.
// What is known only later may be more than one.
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

// Awaits is the check that a run waits for: one that what is done shall make
// hold, or one that the next action needs.
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

// Mended reports whether the checks hold that a run was to make hold: those of
// the action that failed, where the run's error names it, else all of its plan.
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

// Verb is what an event did in a word with what it did it to: "create Secret
// a/b". What was run is a verb itself: "approve …".
func Verb(e steps.Event) string {
	if e.Verb == steps.Run {
		return strings.Replace(e.Text, string(steps.Run)+" ", "", 1)
	}
	return e.Text
}
