package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
)

// sure is how long the check counts of a step must be unchanged before a caption reports a failure. Until then, the
// effect of a recent change might not be visible.
const sure = 3 * time.Second

// next returns the next step of the script. The result depends only on the screen and on the captions shown so far.
func (p *player) next() move {
	a := p.a
	if len(a.panels) > 0 {
		return p.onPanel(a.top())
	}
	switch page := a.page.(type) {
	case *sides:
		return p.onSides(page)
	case *stepPage:
		return p.onStep(page)
	case *summary:
		return p.onSummary(page)
	case *opening:
		return move{
			id: "opening", kind: wait, text: "Opening the link …", what: func() string { return "the link to open" },
		}
	case *standing:
		return move{id: "standing", kind: wait, text: "Reading the state of both clusters …", what: p.unseen}
	}
	return move{id: "pick", kind: halt, text: "Here you pick the guide and the sides."}
}

func (p *player) onSides(s *sides) move {
	switch {
	case s.said != "":
		return move{id: "sides/" + s.said, kind: halt, text: "The link can't be opened: " + s.said}
	case s.busy:
		return move{
			id: "sides/busy", kind: wait, text: "Connecting to both sides …",
			what: func() string { return "both sides to answer" },
		}
	case !s.naming() || !s.read:
		return move{
			id: "sides/read", kind: wait, text: "Reading the contexts …",
			what: func() string { return "you to pick two sides" },
		}
	}
	for side, spec := range s.spec {
		m := s.met[spec.Context]
		switch {
		case spec.Context == "":
		case m == nil || !m.done:
			return move{
				id: "sides/meet", kind: wait, text: "Reading the identity of both sides …",
				what: func() string { return "the " + sideWord(s.guide, side) + " to answer" },
			}
		case m.err != nil:
			return move{
				id: "sides/gone", kind: halt, text: fmt.Sprintf("The %s does not answer: %v", sideWord(s.guide, side), m.err),
			}
		}
	}
	text := fmt.Sprintf("%s. %s", s.guide.Title, s.guide.About)
	if p.w.Fault != "" {
		text += " This demo starts with a fault: " + p.w.Fault
	}
	return move{id: "sides/begin", text: text, key: "enter", hint: p.a.k.Open.as("begin")}
}

func (p *player) onStep(s *stepPage) move {
	a, step := p.a, s.step()
	run := a.run
	switch {
	case run.busy():
		return p.running(run)
	case s.asked != nothing:
		return move{
			id: "plan/" + step.Name, kind: wait, text: "Planning the changes with a dry run; nothing is written …",
			what: func() string { return "the plan of this step" },
		}
	case s.typing():
		return move{id: "typing", kind: at1, key: "esc"}
	case run.visible() && run.err != nil && !p.told[p.runID("failed")]:
		return move{id: p.runID("failed"), text: "The run failed: " + oneLine(run.err.Error())}
	case a.live.Seen(step.Name).IsZero():
		return move{id: "look/" + step.Name, kind: wait, text: "Checking both sides …", what: p.unseen}
	}
	if m, ok := p.heal(s); ok {
		return m
	}
	if m, ok := p.onFault(s); ok {
		return m
	}
	if id := "intro/" + step.Name; !p.told[id] {
		return move{id: id, text: p.intro(s)}
	}
	if m, ok := p.onAnswers(s); ok {
		return m
	}
	if m, ok := p.onChanges(s); ok {
		return m
	}
	return p.verdict(s)
}

func (p *player) runID(what string) string {
	return fmt.Sprintf("run/%s/%d", what, p.a.run.began.UnixNano())
}

// onAnswers returns the step of the script that handles the questions of a guide step. If no answer is needed, it
// returns false.
func (p *player) onAnswers(s *stepPage) (move, bool) {
	pl, step := s.place(), s.step()
	if len(step.Ask) == 0 {
		return move{}, false
	}
	if len(pl.answers) == 0 {
		return move{
			id: "answers/read/" + step.Name, kind: wait, text: "Reading the answers of this step …",
			what: func() string { return "the answers of this step" },
		}, true
	}
	id, q := "answers/"+step.Name, p.toAnswer(pl.answers, nil)
	if p.told[id] && (q == nil || p.told["asked/"+q.Question.Key]) {
		if p.last == "form/save/"+step.Name && q != nil {
			return move{
				id: "answers/save/" + step.Name, kind: wait, text: "Saving the answers …",
				what: func() string { return "the answers to save" },
			}, true
		}
		return move{}, false
	}
	if q != nil { // the answer is missing, or differs from Walk.Answers
		text := fmt.Sprintf(
			"This step has a question: %s. %s The answer in this demo is %s.", strings.TrimSuffix(q.Question.Title, "?"),
			q.Question.Help,
			p.shown(q.Question),
		)
		return move{id: id, text: text, key: "e", hint: p.a.k.Answers.hint()}, true
	}
	if missing := pl.missing(); len(missing) > 0 {
		return move{
			id: id, kind: halt,
			text: fmt.Sprintf(
				"This step requires an answer from you: %s. e opens the questions.",
				missing[0].Question.Title,
			),
		}, true
	}
	return move{}, false
}

// toAnswer returns the first applicable question whose answer differs from Walk.Answers. drafts contains the text typed
// so far, by question key, and can be nil.
func (p *player) toAnswer(list []engine.Answered, drafts map[string]*string) *engine.Answered {
	for i := range list {
		q := &list[i]
		want, given := p.w.Answers[q.Question.Key]
		if !given || !q.Asked {
			continue
		}
		is := q.Question.Show(q.Value)
		if q.Question.Secret && q.Value != nil {
			is = want // secrets are not compared
		}
		if d := drafts[q.Question.Key]; d != nil {
			is = *d
		}
		if is != want {
			return q
		}
	}
	return nil
}

// onChanges returns the step of the script that shows what applying the guide step would change, or the step of the
// script that applies it. The script applies each guide step at most once.
func (p *player) onChanges(s *stepPage) (move, bool) {
	step, live := s.step(), p.a.live
	diffed, applied := "diff/"+step.Name, "apply/"+step.Name
	if len(step.Actions) == 0 || p.told[applied] {
		return move{}, false
	}
	if _, pending := live.Known(step.Name); pending {
		return move{
			id: "plan/" + step.Name, kind: hold, text: "Planning the changes of this step …",
			what: func() string { return "the plan of this step" },
		}, true
	}
	todo := live.Changes(step.Name)
	switch {
	case todo == 0:
		return move{}, false
	case !p.told[diffed] && todo > 0:
		text := p.standing(s)
		if p.first("diff") {
			text += fmt.Sprintf(" Applying the step makes %s; d shows the diff.", steps.Plural(todo, "change"))
		}
		return move{id: diffed, text: text, key: "d", hint: p.a.k.Diff.hint()}, true
	}
	text := "a applies the step."
	if p.first("apply") {
		text = "a applies the step. carrick first shows the number of changes and asks for confirmation."
	}
	return move{id: applied, text: text, key: "a", hint: p.a.k.Apply.as("apply")}, true
}

// verdict returns the step of the script that describes whether the guide step passes. Its key opens the next guide
// step.
func (p *player) verdict(s *stepPage) move {
	a, step := p.a, s.step()
	n := a.live.Board.Count(step.Name)
	if n.Of(engine.InProgress)+n.Of(engine.Checking) > 0 {
		return move{
			id: "waiting/" + step.Name, kind: wait, text: "The workloads are starting. The rows update automatically …",
			what: func() string { return p.waited(s) },
		}
	}
	cell, bad := p.firstBad(s)
	if bad && a.now().Sub(p.still) < sure {
		return move{id: "sure/" + step.Name, kind: wait, text: "Checking again …", what: p.unseen}
	}
	if bad {
		if m, ok := p.mend(s, cell); ok {
			return m
		}
	}
	id := fmt.Sprintf("verdict/%s/%v", step.Name, n)
	return move{id: id, text: p.verdictText(s), key: "right", hint: a.k.Next.hint()}
}

// firstBad returns the first failing cell of the guide step that the script has not skipped. If no cell fails, it
// returns the first unknown one.
func (p *player) firstBad(s *stepPage) (steps.Cell, bool) {
	for _, want := range []engine.State{engine.Failed, engine.Unknown, engine.ToDo} {
		for _, c := range s.guide().Cells() {
			if c.Step == s.step().Name && !p.told["left/"+s.guide().ID(c)] && p.a.live.Board.State(c) == want {
				return c, true
			}
		}
	}
	return steps.Cell{}, false
}

// mend returns the step of the script that goes to a failing cell, names the cause, or presses the key that fixes the
// cell. If no key fixes the cell, or the script has already pressed that key, manually returns the step.
func (p *player) mend(s *stepPage, c steps.Cell) (move, bool) {
	if m, ok := p.toCell(s, c); ok {
		return m, true
	}
	id := s.guide().ID(c)
	if r := p.ran[c]; r != nil && p.told["ran/"+id] && r.done.IsZero() {
		return p.manually(s, c), true
	}
	action, _ := p.a.live.Offer(c)
	if action == nil || p.told["fix/"+id] {
		return p.manually(s, c), true
	}
	if !p.told["cause/"+id] {
		return move{id: "cause/" + id, text: p.cause(s, c)}, true
	}
	text := fmt.Sprintf("f runs only the action that fixes this check: %s.", lowerFirst(oneLine(action.Title)))
	return move{id: "fix/" + id, text: text, key: "f", hint: p.a.k.Fix.hint()}, true
}

func checkOf(s *stepPage, c steps.Cell) *steps.Check {
	check, _ := s.guide().Check(c.Check)
	return check
}

// toCell returns the step of the script that moves the cursor towards a cell. If the cursor is already on the cell,
// toCell returns false.
func (p *player) toCell(s *stepPage, c steps.Cell) (move, bool) {
	if p.a.run.visible() {
		return move{id: "to/esc", kind: at1, key: "esc"}, true
	}
	_, at, ok := s.cell()
	rows := s.rows()
	is := slices.IndexFunc(rows, func(r *steps.Check) bool { return ok && r.Name == at.Check })
	want := slices.IndexFunc(rows, func(r *steps.Check) bool { return r.Name == c.Check })
	switch {
	case at == c:
		return move{}, false
	case want < 0 || is == want:
		return move{id: "to/tab", kind: at1, key: "tab"}, true
	case is < want:
		return move{id: "to/down", kind: at1, key: "down"}, true
	}
	return move{id: "to/up", kind: at1, key: "up"}, true
}
