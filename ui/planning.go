package ui

import (
	"errors"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

type purpose int

const (
	nothing purpose = iota
	toShow
	toApply
	toFix // one action of a step
	toUndo
)

type plannedMsg struct {
	step    string
	ask     int    // number of the request; a later request makes it obsolete
	title   string // title of the plan's panel
	purpose purpose
	scope   engine.Scope
	model.Planned
}

// ask requests a plan. If the plan is to be executed, it also checks the permissions.
func (p *stepPage) ask(why purpose, title string, scope engine.Scope) tea.Cmd {
	a := p.a
	switch {
	case a.run.busy():
		a.notice = "still running; press ctrl+c to stop"
		return nil
	case len(p.step().Actions) == 0 && len(scope.Steps) > 0:
		a.notice = "this step changes nothing: it only runs checks"
		return nil
	}
	return p.plan(why, title, scope)
}

// applyAll requests a plan of all steps.
func (p *stepPage) applyAll() tea.Cmd { return p.ask(toApply, "all steps", engine.Scope{}) }

// plan stores the signers that the user has just confirmed, and then creates the plan.
func (p *stepPage) plan(why purpose, title string, scope engine.Scope, confirmed ...engine.Signer) tea.Cmd {
	a := p.a
	p.asking++
	p.asked = why
	a.run.dismiss()
	live, ctx := a.live, a.ctx
	m := plannedMsg{step: p.step().Name, ask: p.asking, title: title, purpose: why, scope: scope}
	return func() tea.Msg {
		if len(confirmed) > 0 {
			m.Err = live.Session.Confirm(confirmed...)
		}
		switch {
		case m.Err != nil:
		case why == toShow:
			m.Planned = live.Show(ctx, scope, false)
		default:
			m.Planned = live.Plan(ctx, scope, why == toUndo)
		}
		return m
	}
}

// planned opens the panel that the plan was requested for.
func (p *stepPage) planned(m plannedMsg) tea.Cmd {
	if m.ask != p.asking || p.asked == nothing {
		return nil // the request is obsolete
	}
	p.asked = nothing
	a, plan := p.a, m.Plan
	missing := (*steps.MissingError)(nil)
	if plan != nil && !plan.Undo && len(m.scope.Actions) == 0 && len(m.scope.Steps) > 0 {
		a.live.Know(m.step, plan)
	}
	switch {
	case errors.As(m.Err, &missing) && len(missing.Questions) > 0:
		return p.askFirst(missing.Questions[0], len(m.scope.Steps)+len(m.scope.Actions) == 0)
	case m.Err != nil:
		a.trouble(m.Err)
		return a.lay(a.errorPanel("The changes could not be planned", m.Err))
	case len(m.Signers) > 0:
		return a.lay(p.confirmSigners(m))
	case m.purpose == toShow:
		return a.lay(a.diffOf("Changes of step "+p.step().Title, plan))
	case plan.Empty() && leftTitle(plan) != "":
		return a.lay(a.diffOf(leftTitle(plan), plan))
	case plan.Empty() && plan.Undo:
		a.notice = "there is nothing to undo in this step"
		if _, all := a.page.(*summary); all {
			a.notice = "there is nothing to undo: this link has created nothing"
		}
		return nil
	case plan.Empty() && m.purpose == toFix: // the fix has nothing to change, so apply its whole step instead
		_, step := p.guide().Action(m.scope.Actions[0])
		return p.plan(toApply, step.Title, engine.Scope{Steps: []string{step.Name}})
	case plan.Empty():
		a.notice = p.nothingToChange(m.scope)
		return nil
	case len(m.Missing) > 0:
		return a.lay(a.lackingPanel(m.Missing))
	}
	return a.lay(p.confirm(deedOf(m), plan))
}

// askFirst opens the form of the step that asks a missing question. When the answers are saved, it applies all steps if
// that is what the answers are for.
func (p *stepPage) askFirst(missing steps.Question, all bool) tea.Cmd {
	cmd := p.enter(slices.IndexFunc(p.guide().Steps, func(s steps.Step) bool {
		return slices.ContainsFunc(s.Ask, func(q steps.Question) bool { return q.Key == missing.Key })
	}))
	p.place().wanted, p.resume = true, all
	return cmd
}

// leftTitle returns the title for the objects that an undo keeps, or "" if it keeps none.
func leftTitle(p *engine.Plan) string {
	switch {
	case len(p.Held()) > 0:
		return "Kept: used by others"
	case len(p.Unentered()) > 0:
		return "Kept: not in the inventory of this link"
	case len(p.Left()) > 0:
		return "Kept: changed since carrick wrote it"
	}
	return ""
}

// nothingToChange says why the plan of a scope is empty. A scope without steps covers all steps.
func (p *stepPage) nothingToChange(scope engine.Scope) string {
	board, step := p.a.live.Board, p.step().Name
	if len(scope.Steps)+len(scope.Actions) == 0 {
		step = ""
	}
	n := board.Count(step)
	blocked := slices.ContainsFunc(p.guide().Cells(), func(c steps.Cell) bool {
		_, is := board.Cause(c)
		return is && (c.Step == step || step == "")
	})
	switch {
	case n.Of(engine.Failed)+n.Of(engine.ToDo) > 0:
		return "everything that carrick creates here exists: each failed row has its own fix"
	case n.Of(engine.Warning) > 0 && !blocked && n.Green():
		return "there is nothing to change: each row with a warning has its own fix"
	case blocked || !n.Green():
		return "there is nothing to change now: some rows do not pass yet"
	}
	return "there is nothing to change: everything is up to date"
}

// deed contains the words for a plan in a question, while it is executed, and afterwards.
type deed struct {
	question, doing, done string
	fixes                 bool // the plan is a single action that fixes a check
}

func deedOf(m plannedMsg) deed {
	switch m.purpose {
	case toUndo:
		return deed{question: "Undo " + m.title + "?", doing: "undoing " + m.title, done: "undid " + m.title}
	case toFix:
		return deed{question: m.title + "?", doing: m.title, done: m.title, fixes: true}
	}
	return deed{question: "Apply " + m.title + "?", doing: "applying " + m.title, done: "applied " + m.title}
}
