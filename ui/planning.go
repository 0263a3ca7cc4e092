package ui

import (
	"context"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// purpose is what a plan was asked for.
type purpose int

const (
	nothing purpose = iota // the footer's number alone
	toShow
	toApply
	toFix // one action of a step
	toUndo
)

// planWithin is how long a plan may take.
const planWithin = 30 * time.Second

// plannedMsg is for the page of the step: a plan.
type plannedMsg struct {
	step    string
	ask     int    // number of the question; a later one makes it nobody's
	title   string // of what is planned
	purpose purpose
	scope   engine.Scope
	plan    *engine.Plan
	lacking engine.Lacking
	signers []engine.Signer // to be confirmed first; then there is no plan
	err     error
}

// ask has a plan made, and the rights that it takes looked at where it is to
// be done.
func (p *stepPage) ask(why purpose, title string, scope engine.Scope) tea.Cmd {
	a := p.a
	switch {
	case a.run.busy():
		a.notice = "still at work: ctrl+c stops it"
		return nil
	case len(p.step().Actions) == 0 && len(scope.Steps) > 0:
		a.notice = "this step changes nothing: it only looks"
		return nil
	}
	return p.plan(why, title, scope)
}

// plan has it made, once the signers that the user has just confirmed are kept.
func (p *stepPage) plan(why purpose, title string, scope engine.Scope, confirmed ...engine.Signer) tea.Cmd {
	a := p.a
	p.asking++
	p.asked = why
	a.run.dismiss()
	n, session, parent, step := p.asking, p.session(), a.ctx, p.step().Name
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, planWithin)
		defer cancel()
		m := plannedMsg{step: step, ask: n, title: title, purpose: why, scope: scope}
		if len(confirmed) > 0 {
			m.err = session.Confirm(confirmed...)
		}
		if m.err == nil && why != toShow {
			m.signers, m.err = session.Unconfirmed(ctx)
		}
		switch {
		case m.err != nil || len(m.signers) > 0:
			return m
		case why == toUndo:
			m.plan, m.err = session.PlanUndo(ctx, scope)
		default:
			m.plan, m.err = session.Plan(ctx, scope)
		}
		if m.err == nil && why != toShow {
			m.lacking, m.err = session.Lacking(ctx, m.plan)
		}
		return m
	}
}

// planned opens what the plan was asked for.
func (p *stepPage) planned(m plannedMsg) tea.Cmd {
	pl := p.placeOf(m.step)
	if m.purpose == nothing {
		pl.pending, pl.plan = false, m.plan
		if m.err != nil {
			pl.plan = nil
		}
		return nil
	}
	if m.ask != p.asking || p.asked == nothing {
		return nil // it is not waited for any longer
	}
	p.asked = nothing
	a := p.a
	switch {
	case m.err != nil:
		a.trouble(m.err)
		return a.lay(a.errorPanel("What would change could not be found out", m.err))
	case len(m.signers) > 0:
		return a.lay(p.confirmSigners(m))
	case m.purpose == toShow:
		pl.plan = m.plan
		return a.lay(a.diffOf("Changes of step "+p.step().Title, m.plan))
	case m.plan.Empty() && leftTitle(m.plan) != "":
		pl.plan = m.plan
		return a.lay(a.diffOf(leftTitle(m.plan), m.plan))
	case m.plan.Empty() && m.plan.Undo:
		a.notice = "there is nothing to take back in this step"
		if _, all := a.page.(*summary); all {
			a.notice = "there is nothing to take back: this link has made nothing"
		}
		return nil
	case m.plan.Empty() && m.purpose == toFix: // what is lacking is another action's of its step
		_, step := p.guide().Action(m.scope.Actions[0])
		return p.plan(toApply, step.Title, engine.Scope{Steps: []string{step.Name}})
	case m.plan.Empty():
		pl.plan = m.plan
		a.notice = p.nothingToChange()
		return nil
	case len(m.lacking) > 0:
		return a.lay(a.lackingPanel(m.lacking))
	}
	return a.lay(p.confirm(deedOf(m), m.plan))
}

// leftTitle is the title over what an undo leaves; "": it leaves nothing of the link.
func leftTitle(p *engine.Plan) string {
	switch {
	case len(p.Held()) > 0:
		return "Left, for others need it"
	case len(p.Unentered()) > 0:
		return "Left: not in the inventory of this link"
	case len(p.Left()) > 0:
		return "Left: changed since carrick wrote it"
	}
	return ""
}

// nothingToChange is what an empty plan means for the rows of the step.
func (p *stepPage) nothingToChange() string {
	board, step := p.a.live.board, p.step().Name
	n := board.Count(step)
	blocked := slices.ContainsFunc(p.guide().Cells(), func(c steps.Cell) bool {
		_, is := board.Cause(c)
		return is && c.Step == step
	})
	switch {
	case n[steps.Fail] > 0:
		return "nothing that carrick creates here is missing: each failed row has its own fix"
	case n[steps.Warn] > 0 && !blocked && n.Green():
		return "there is nothing to change: each row with a warning has its own fix"
	case blocked || !n.Green():
		return "there is nothing to change here now: some rows of this step are not ok yet"
	}
	return "there is nothing to change: all is as it should be"
}

// changes is how many things applying the step would change, as last known;
// -1: not known.
func (pl *place) changes() int {
	if pl.plan == nil {
		return -1
	}
	n := 0
	for v, many := range pl.plan.Tally("") {
		if v.Changes() {
			n += many
		}
	}
	for _, act := range pl.plan.Actions {
		if act.Pending != "" {
			n++
		}
	}
	return n
}

// deed is what is done, in words: as a question, while it goes on and after.
type deed struct {
	question, doing, done string
	fixes                 bool // it is one action of a step alone
}

func deedOf(m plannedMsg) deed {
	switch m.purpose {
	case toUndo:
		return deed{question: "Take back " + m.title + "?", doing: "taking back " + m.title, done: "took back " + m.title}
	case toFix:
		return deed{question: m.title + "?", doing: m.title, done: m.title, fixes: true}
	}
	return deed{question: "Apply " + m.title + "?", doing: "applying " + m.title, done: "applied " + m.title}
}
