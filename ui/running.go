package ui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// run is one use of Apply or Undo. Its progress stands in the place of the
// detail while the board above it moves. A nil run is none.
type run struct {
	plan     *engine.Plan
	deed     deed
	cancel   context.CancelFunc
	stopping bool
	done     bool
	shown    bool // in the place of the detail
	err      error
	parts    []part
	lines    []string // a sign, and what was done
	asked    asking   // what it waits for a person to do
	says     string   // what the action in hand said last, unless it did something since
	changed  int
	began    time.Time
	heardAt  time.Time // when something was heard last
	took     time.Duration
	wrong    map[steps.Cell]bool // what was not right when it ended
}

// part is one thing of a plan that is to be done.
type part struct {
	act     *engine.Planned
	what    string // "": what the action does is known only once its turn comes
	overtly string // for people: "provider: Secret a/b"
	done    bool
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
func (a *app) start(plan *engine.Plan, o steps.ApplyOptions, d deed) tea.Cmd {
	ctx, cancel := context.WithCancel(a.ctx)
	a.run = &run{plan: plan, deed: d, cancel: cancel, shown: true, began: a.now(), heardAt: a.now(), parts: a.partsOf(plan)}
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

// partsOf are the things that a plan changes, in its order.
func (a *app) partsOf(plan *engine.Plan) []part {
	var out []part
	for i := range plan.Actions {
		act := &plan.Actions[i]
		who := a.live.session.Guide().Sides[act.Side].Name + ": "
		if act.Pending != "" && !plan.Undo && len(changing(act.Change.Items)) == 0 {
			out = append(out, part{act: act, overtly: who + oneLine(act.Title)})
		}
		items := changing(act.Change.Items)
		slices.SortStableFunc(items, func(x, y steps.Item) int {
			switch {
			case isRelease(x) == isRelease(y):
				return 0
			case isRelease(x):
				return 1
			}
			return -1
		})
		for _, it := range items {
			out = append(out, part{act: act, what: it.What, overtly: who + oneLine(it.What)})
		}
	}
	return out
}

// isRelease tells whether a thing is a release of Helm, which is done when all of
// its objects are.
func isRelease(it steps.Item) bool { return strings.HasPrefix(it.What, "Release ") }

// heard notes what is being done.
func (r *run) heard(a *app, m progressMsg) {
	e := m.event
	asked := r.asked.heard(e)
	text, sign := oneLine(e.Text), "·"
	if side := a.live.session.Guide().Sides[e.Side].Name; side != "" {
		text = side + ": " + text
	}
	if e.Verb == steps.Run { // what was run is a verb itself: "approve …"
		text = strings.Replace(text, string(steps.Run)+" ", "", 1)
	}
	if e.Verb != "" {
		mark, ink := a.t.verb(e.Verb)
		sign = ink.Render(mark)
		r.changed++
	}
	r.heardAt = a.now()
	r.reach(e)
	if e.Action != "" && !asked { // the checks of the step speak for themselves above
		r.lines = append(r.lines, sign+" "+text)
		r.says = ""
		if e.Verb == "" {
			r.says = text
		}
	}
	if e.Verb != "" {
		a.log.did(a.now(), sign, text)
		return
	}
	a.log.note(a.now(), text)
}

// reach notes how far a run is: what was done, and that actions before it are
// over, whether or not they said so.
func (r *run) reach(e steps.Event) {
	first := -1
	for i, p := range r.parts {
		if p.act.Action == e.Action && p.act.Side == e.Side {
			first = i
			break
		}
	}
	if first < 0 {
		return
	}
	for i := range r.parts[:first] {
		r.parts[i].done = true
	}
	for i := first; i < len(r.parts) && r.parts[i].act.Action == e.Action && r.parts[i].act.Side == e.Side; i++ {
		if e.Verb != "" && r.parts[i].what == e.What {
			r.parts[i].done = true
		}
	}
}

// ahead are the parts that are not done yet.
func (r *run) ahead() []part {
	var out []part
	for _, p := range r.parts {
		if !p.done {
			out = append(out, p)
		}
	}
	return out
}

// ended notes how it went, and has everything looked at that may have changed
// with it.
func (r *run) ended(a *app, m ranMsg) tea.Cmd {
	r.done, r.err, r.took = true, m.err, a.now().Sub(r.began)
	r.wrong = map[steps.Cell]bool{}
	for _, c := range a.wrongCells(steps.Fail, steps.Unknown) {
		r.wrong[c] = true
	}
	if m.err != nil {
		a.trouble(m.err)
	} else {
		a.log.note(a.now(), r.deed.done+": "+plural(r.changed, "change"))
	}
	a.notice = ""
	var cmds []tea.Cmd
	switch p := a.page.(type) {
	case *stepPage:
		cmds = append(cmds, p.afterRun())
	case *summary:
		cmds = append(cmds, p.from.afterRun(), p.take())
	}
	return tea.Batch(cmds...)
}

// afterRun forgets what was known of the changes to come, and finds it out anew.
func (p *stepPage) afterRun() tea.Cmd {
	for _, pl := range p.places {
		pl.plan, pl.basis = nil, engine.Counts{}
	}
	return tea.Batch(p.forecast(), p.learnAnswers())
}

// overtaken is a cell of a step that has gone wrong since a run ended well, whose
// result would hide that.
func (r *run) overtaken(a *app, step string) (steps.Cell, bool) {
	if !r.visible() || !r.done || r.err != nil {
		return steps.Cell{}, false
	}
	now := a.wrongCells(steps.Fail, steps.Unknown)
	for c := range r.wrong {
		if !slices.Contains(now, c) {
			delete(r.wrong, c) // it has come right: if it fails again, that is new
		}
	}
	for _, c := range now {
		if c.Step == step && !r.wrong[c] {
			return c, true
		}
	}
	return steps.Cell{}, false
}

// failing counts the cells of a step that fail although a run has ended well;
// those that were looked at before do not count.
func (r *run) failing(a *app, step string) int {
	n := 0
	for _, c := range a.wrongCells(steps.Fail) {
		if c.Step == step && a.live.looks[c].began.After(r.began.Add(r.took)) {
			n++
		}
	}
	return n
}

// failed tells whether a run that stopped part-way is in sight.
func (r *run) failed() bool { return r.visible() && r.done && r.err != nil }
