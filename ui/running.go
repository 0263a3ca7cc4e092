package ui

import (
	"context"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// run is one apply or undo. Its progress replaces the evidence while the board above continues to update. A nil run
// means that nothing has been run yet.
type run struct {
	*model.Run
	deed     deed
	cancel   context.CancelFunc
	stopping bool
	done     bool
	shown    bool // the progress is shown instead of the evidence
	err      error
	lines    []string // the messages so far; each has a glyph and a text
	began    time.Time
	heardAt  time.Time // time of the last event
	took     time.Duration
	wrong    map[steps.Cell]bool // cells that did not pass when the run ended
	fell     steps.Cell          // a cell that has failed since, and hides the result
	mendable bool                // the run failed, and the checks that it was supposed to fix did not pass
}

type progressMsg struct{ event steps.Event }

type ranMsg struct{ err error }

func (r *run) busy() bool { return r != nil && !r.done }

func (r *run) visible() bool { return r != nil && r.shown }

// dismiss hides a run that has ended. It reports whether such a run was visible.
func (r *run) dismiss() bool {
	if r == nil || !r.done || !r.shown {
		return false
	}
	r.shown = false
	return true
}

func (r *run) stop() {
	r.stopping = true
	r.cancel()
}

func (a *app) start(plan *engine.Plan, o steps.ApplyOptions, d deed) tea.Cmd {
	ctx, cancel := context.WithCancel(a.ctx)
	a.run = &run{Run: model.NewRun(plan), deed: d, cancel: cancel, shown: true, began: a.now(), heardAt: a.now()}
	a.log.note(a.now(), d.doing)
	a.live.Board.SetRunning(plan)
	session, send := a.live.Session, a.send
	say := func(e steps.Event) { send(progressMsg{e}) }
	return func() tea.Msg {
		defer cancel()
		if plan.Undo {
			return ranMsg{session.Undo(ctx, plan, say)}
		}
		return ranMsg{session.Apply(ctx, plan, o, say)}
	}
}

func (r *run) heard(a *app, m progressMsg) {
	e := m.event
	asked := r.Heard(e)
	text, sign := oneLine(model.Verb(e)), "·"
	if side := a.live.Role(e.Side); side != "" {
		text = side + ": " + text
	}
	if e.Verb != "" {
		mark, ink := a.t.verb(e.Verb)
		sign = ink.Render(mark)
	}
	r.heardAt = a.now()
	if e.Action != "" && !asked { // an event from a check has no action, and the board shows its result
		r.lines = append(r.lines, sign+" "+text)
		if e.Verb == "" {
			r.Says = text
		}
	}
	if e.Verb != "" {
		a.log.did(a.now(), sign, text)
		return
	}
	a.log.note(a.now(), text)
}

// ended records the result and updates everything that the run might have changed.
func (r *run) ended(a *app, m ranMsg) tea.Cmd {
	r.done, r.err, r.took = true, m.err, a.now().Sub(r.began)
	a.live.Board.SetRunning(nil)
	r.wrong = map[steps.Cell]bool{}
	for _, c := range a.live.Wrong(engine.Failed, engine.Unknown, engine.ToDo) {
		r.wrong[c] = true
	}
	r.mendable = m.err != nil && !a.live.Fixed(r.Plan, m.err)
	if m.err != nil {
		a.trouble(m.err)
	} else {
		r.Succeeded()
		a.undid = r.Plan.Undo
		a.log.note(a.now(), r.deed.done+": "+steps.Plural(r.Changed, "change"))
	}
	a.notice = ""
	var cmds []tea.Cmd
	switch p := a.page.(type) {
	case *stepPage:
		cmds = append(cmds, p.afterRun())
	case *summary:
		cmds = append(cmds, p.from.afterRun(), p.take())
	}
	if m, is := a.top().(*mapPanel); is {
		cmds = append(cmds, m.begin())
	}
	return tea.Batch(cmds...)
}

// afterRun discards the forecasts and computes them again.
func (p *stepPage) afterRun() tea.Cmd {
	p.a.live.ForgetPlans()
	return tea.Batch(p.forecast(true), p.learnAnswers())
}

// mended reports whether all checks that a failed run was supposed to fix pass now.
func (r *run) mended(a *app) bool { return r.failed() && r.mendable && a.live.Fixed(r.Plan, r.err) }

// overtaken returns a cell of a step that has started to fail since a run succeeded. Otherwise the result of the run
// would hide the failure. overtaken ignores checks that began before the run ended.
func (r *run) overtaken(a *app, step string) (steps.Cell, bool) {
	if !r.visible() || !r.done || r.err != nil {
		return steps.Cell{}, false
	}
	now := a.live.Wrong(engine.Failed, engine.Unknown, engine.ToDo)
	for c := range r.wrong {
		if !slices.Contains(now, c) {
			delete(r.wrong, c) // the cell passes now, so another failure is new
		}
	}
	for _, c := range now {
		if c.Step == step && !r.wrong[c] && r.after(a, c) {
			return c, true
		}
	}
	return steps.Cell{}, false
}

// hide hides the result of the run behind a cell that has failed since. A notice says so.
func (r *run) hide(a *app, c steps.Cell) {
	r.fell, a.notice = c, r.fallen()
	r.dismiss()
}

// fallen returns the notice about the cell that hides the result.
func (r *run) fallen() string { return r.deed.done + "; since then this check fails" }

// recover shows the result of the run again once the cell that hides it passes, unless another notice is shown.
func (r *run) recover(a *app) {
	if r == nil || r.fell == (steps.Cell{}) || a.notice != r.fallen() || !a.live.Board.Verdict(r.fell).Status.Holds() {
		return
	}
	r.fell, r.shown, a.notice = steps.Cell{}, true, ""
}

// failing counts the cells of a step that fail although a run succeeded. It ignores checks that began before the run
// ended.
func (r *run) failing(a *app, step string) int {
	n := 0
	for _, c := range a.live.Wrong(engine.Failed) {
		if c.Step == step && r.after(a, c) {
			n++
		}
	}
	return n
}

// after reports whether the last check of a cell began after the run had ended.
func (r *run) after(a *app, c steps.Cell) bool {
	return a.live.Look(c).Began.After(r.began.Add(r.took))
}

// failed reports whether a failed run is visible.
func (r *run) failed() bool { return r.visible() && r.done && r.err != nil }
