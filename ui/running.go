package ui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// run is one use of Apply or Undo. Its progress stands in the place of the
// detail while the board above it moves. A nil run is none.
type run struct {
	plan     *steps.Plan
	deed     deed
	cancel   context.CancelFunc
	stopping bool
	done     bool
	shown    bool // in the place of the detail
	err      error
	lines    []string // a sign, and what was done
	asked    asking   // what it waits for a person to do
	changed  int
	began    time.Time
	took     time.Duration
}

// progressMsg is for the run: something was done.
type progressMsg struct{ event steps.Event }

// ranMsg is for the run: it is over.
type ranMsg struct{ err error }

func (r *run) busy() bool { return r != nil && !r.done }

func (r *run) visible() bool { return r != nil && r.shown }

// dismiss puts a run that is over out of sight, and tells whether it did.
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

// start does a plan that was confirmed.
func (a *app) start(plan *steps.Plan, o steps.ApplyOptions, d deed) tea.Cmd {
	ctx, cancel := context.WithCancel(a.ctx)
	a.run = &run{plan: plan, deed: d, cancel: cancel, shown: true, began: a.now()}
	a.log.note(a.now(), d.doing)
	session, send := a.live.session, a.send
	say := func(e steps.Event) { send(progressMsg{e}) }
	return func() tea.Msg {
		defer cancel()
		if plan.Undo {
			return ranMsg{session.Undo(ctx, plan, say)}
		}
		return ranMsg{session.Apply(ctx, plan, o, say)}
	}
}

// heard notes what is being done.
func (r *run) heard(a *app, m progressMsg) {
	asked := r.asked.heard(m.event)
	text, sign := oneLine(m.event.Text), "·"
	if side := a.live.session.Guide().Sides[m.event.Side].Name; side != "" {
		text = side + ": " + text
	}
	if m.event.Verb != "" {
		mark, ink := a.t.verb(m.event.Verb)
		sign = ink.Render(mark)
	}
	if m.event.Verb != "" {
		r.changed++
	}
	if m.event.Action != "" && !asked { // the checks of the step speak for themselves above
		r.lines = append(r.lines, sign+" "+text)
	}
	a.log.note(a.now(), text)
}

// ended notes how it went, and has everything looked at that may have changed
// with it.
func (r *run) ended(a *app, m ranMsg) tea.Cmd {
	r.done, r.err, r.took = true, m.err, a.now().Sub(r.began)
	if m.err != nil {
		a.trouble(m.err)
	}
	a.notice = ""
	cmds := []tea.Cmd{a.live.sweepQuiet()}
	if p, ok := a.page.(*stepPage); ok {
		for _, pl := range p.places {
			pl.plan, pl.basis = nil, steps.Counts{}
		}
		cmds = append(cmds, p.forecast(), p.learnAnswers())
	}
	return tea.Batch(cmds...)
}

// view is the progress in the place of the detail: what is asked of the person
// stands first and whole, then the last lines that fit.
func (r *run) view(a *app, w, h int) []string {
	var ask, done []string
	if r.asks() {
		ask = r.asked.view(a, w)
	} else {
		for _, l := range r.lines {
			sign, text, _ := strings.Cut(l, " ")
			done = append(done, hang("   "+sign+" ", wrap(text, max(1, w-6)))...)
		}
	}
	verdict := r.verdict(a, w)
	if room := h - len(ask); room < len(verdict) {
		verdict = verdict[:max(0, room)]
	}
	if len(ask) > h {
		ask = ask[:h]
	}
	done = append(done, verdict...)
	if room := h - len(ask); len(done) > room {
		done = done[len(done)-room:]
	}
	return append(ask, done...)
}

// verdict is the last line of a run: that it goes on, or how it ended.
func (r *run) verdict(a *app, w int) []string {
	stopped := (*steps.StoppedError)(nil)
	switch {
	case r.stopping && !r.done:
		return []string{" " + a.t.warn.Render("!") + " stopping, after what is in hand"}
	case !r.done:
		line := " " + a.t.accent.Render(a.spin()) + " " + r.deed.doing + a.t.faint.Render("  "+span(a.now().Sub(r.began)))
		if r.asks() {
			return []string{line}
		}
		if why := r.awaits(a); why != "" && a.now().Sub(r.began) > 2*time.Second {
			return append([]string{line}, hang("   ", wrap(why, max(1, w-4)))...)
		}
		return []string{line}
	case r.err == nil:
		text := fmt.Sprintf("%s: %s in %.1f s", r.deed.done, plural(r.changed, "change"), r.took.Seconds())
		return hang(" "+a.t.good.Render("✓")+" ", wrap(text, max(1, w-3)))
	case errors.As(r.err, &stopped) && errors.Is(r.err, context.Canceled) && stopped.Done == 0:
		return []string{" " + a.t.warn.Render("!") + " stopped by you; nothing was changed"}
	case errors.As(r.err, &stopped) && errors.Is(r.err, context.Canceled):
		text := fmt.Sprintf("stopped by you after %s; what was done stays, and doing it again goes on from there", plural(stopped.Done, "change"))
		return hang(" "+a.t.warn.Render("!")+" ", wrap(text, max(1, w-3)))
	}
	return hang(" "+a.t.bad.Render("✗")+" ", wrap(oneLine(r.err.Error()), max(1, w-3)))
}

// awaits is the check that a run waits for: one that an action needs, else one
// that the actions shall make hold.
func (r *run) awaits(a *app) string {
	if r.plan.Undo {
		return ""
	}
	guide := a.live.session.Guide()
	say := func(c steps.Cell) string {
		check, step := guide.Check(c.Check)
		v := a.live.board.Verdict(c)
		return fmt.Sprintf("waiting until it holds on the %s (step %s): %s; now: %s", guide.Sides[c.Side].Name, step.Title, check.Title, oneLine(v.Found))
	}
	for _, act := range r.plan.Actions {
		for _, need := range guide.NeedsOf(act.Action, act.Side) {
			if !a.live.board.Verdict(need).Allows() && !r.plan.Mends(guide, need) {
				return say(need)
			}
		}
	}
	for _, c := range guide.Cells() {
		if s := a.live.board.Verdict(c).Status; r.plan.Mends(guide, c) && !s.Holds() && s != steps.Skip {
			return say(c)
		}
	}
	return ""
}
