package ui

import (
	"slices"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// summary is the last page. It shows the state of each step, the checks that do not pass, the created objects, upcoming
// expiries, and the next commands.
type summary struct {
	a      *app
	from   *stepPage
	made   *engine.Plan // the undo plan, which shows what this link created
	err    error
	next   []command // commands to continue
	scroll *pager
}

// takenMsg contains what this link has created.
type takenMsg struct {
	plan *engine.Plan
	err  error
}

func (s *summary) typing() bool { return s.scroll.typing() }

func (s *summary) pace() time.Duration {
	if s.from.asked != nothing {
		return spinning
	}
	if done, all := s.a.live.Looked(); done < all {
		return spinning
	}
	return 0
}

func (s *summary) about() string {
	return "The state of every step, what is left to do, and how to continue."
}

// begin prepares the text and computes what this link created.
func (s *summary) begin() tea.Cmd {
	s.scroll = s.a.pager("", s.lines)
	s.next = s.a.commands(false)
	return s.take()
}

// take computes what this link created.
func (s *summary) take() tea.Cmd {
	ctx, live := s.a.ctx, s.a.live
	return func() tea.Msg {
		p := live.Show(ctx, engine.Scope{}, true)
		return takenMsg{p.Plan, p.Err}
	}
}

func (s *summary) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case takenMsg:
		s.made, s.err = msg.plan, msg.err
		p := s.made
		s.next = s.a.commands(p != nil && p.Empty() && leftTitle(p) == "")
	case answersMsg, plannedMsg, savedMsg:
		return s.from.update(msg)
	case tea.KeyMsg:
		return s.pressed(msg)
	}
	return s.scroll.search.other(msg)
}

func (s *summary) pressed(k tea.KeyMsg) tea.Cmd {
	a, keys := s.a, s.a.k
	searching := s.scroll.search.on()
	switch {
	case s.typing():
	case s.from.early(k):
		return nil
	case key.Matches(k, keys.Esc.Binding) && s.from.asked != nothing:
		s.from.asked = nothing
		return nil
	case key.Matches(k, keys.Esc.Binding) && a.run.dismiss():
		return nil
	case key.Matches(k, keys.Esc.Binding) && searching, key.Matches(k, keys.Hit.Binding) && searching:
	case key.Matches(k, keys.Back.Binding, keys.Esc.Binding):
		a.run.dismiss()
		return a.turn(s.from)
	case key.Matches(k, keys.Jump.Binding):
		return s.from.jump(k)
	case key.Matches(k, keys.Save.Binding):
		return a.save()
	case key.Matches(k, keys.All.Binding):
		return a.again()
	case key.Matches(k, keys.Everything.Binding):
		return s.from.applyAll()
	case key.Matches(k, keys.Undo.Binding):
		return s.from.ask(toUndo, "all that this link created", engine.Scope{})
	case key.Matches(k, keys.Open.Binding) && a.run.visible():
		return a.lay(a.logPanel())
	case key.Matches(k, keys.Open.Binding):
		return s.from.enter(a.live.FirstOpen())
	}
	return s.scroll.update(k)
}

func (s *summary) view() []string {
	a := s.a
	out := []string{a.headline(a.live.Guide().Title, a.where(len(a.live.Guide().Steps)))}
	if a.h >= middleFrom {
		out = append(out, a.sidesLine())
	}
	out = append(out, a.rule())
	h := max(0, a.h-len(out)-2)
	var progress []string
	if a.run.visible() && h > 2 {
		room := min(max(detailLines(a.h), a.run.needs(a, a.w)), h-2)
		progress = append([]string{a.rule()}, fill(a.run.view(a, a.w, room), room)...)
	}
	lines := s.lines(a.w - 2)
	s.scroll.high = max(1, h-len(progress))
	body := s.scroll.body(lines, h-len(progress))
	for i, l := range body {
		body[i] = " " + s.scroll.search.mark(l, s.scroll.shown+i)
	}
	out = append(fill(append(out, body...), a.h-2-len(progress)), progress...)
	return append(append(out, a.rule()), s.foot(len(lines)))
}

// foot returns the footer of the summary. all is the number of lines of the complete text.
func (s *summary) foot(all int) string {
	a := s.a
	switch {
	case a.notice != "" || s.typing() || s.scroll.search.on():
		return s.scroll.foot(true)
	case s.from.asked != nothing:
		return a.footer([]hint{{a.spin(), "planning the changes"}}, []hint{a.k.Esc.as("cancel")})
	case a.run.busy():
		return a.footer([]hint{a.k.Interrupt.as("stop"), a.k.Log.hint()}, []hint{a.k.Help.hint()})
	}
	first := []hint{a.k.Back.hint()}
	if !s.nothing() {
		first = append(first, a.k.Undo.as("undo all"))
	}
	first = append(first, a.k.Save.as("save a report"), a.k.Jump.hint(), a.k.All.hint())
	if !a.live.Board.Count("").Green() {
		first = slices.Insert(first, 1, a.k.Everything.hint(), a.k.Open.as("to the first open step"))
	}
	if below := all - s.scroll.shown - s.scroll.high; below > 0 {
		first = append([]hint{{"↓", steps.Plural(below, "more line")}}, first...)
	} else if s.scroll.shown > 0 {
		first = append([]hint{{"↑", "up"}}, first...)
	}
	if a.run.visible() {
		first = append([]hint{a.k.Esc.as("close"), a.k.Log.hint()}, first...)
	}
	return a.footer(first, []hint{a.k.Help.hint(), a.k.Quit.hint()})
}

func (s *summary) lines(w int) []string {
	a := s.a
	n := a.live.Board.Count("")
	verdict := a.t.good.Render("✓") + " " + a.t.title.Render("all checks pass")
	wrong, none := n.Of(engine.Failed)+n.Of(engine.Unknown), s.nothing()
	switch {
	case wrong == 0 && none && a.undid:
		verdict = a.t.good.Render("✓") + " " + a.t.title.Render("undone: nothing of this link is left")
	case wrong == 0 && none && n.Of(engine.ToDo) > 0:
		verdict = a.t.sign(engine.ToDo) + " " + a.t.title.Render("this link has created nothing yet")
	case wrong == 0 && n.Of(engine.ToDo) > 0:
		verdict = a.t.sign(engine.ToDo) + " " + a.t.title.Render("the setup is not complete yet")
	case n.Green() && n.Of(engine.Warning) > 0:
		verdict = a.t.warn.Render("!") + " " +
			a.t.title.Render("no check fails, and "+steps.Plural(n.Of(engine.Warning), "warning")+" to review")
	case !n.Green():
		verdict = a.t.warn.Render("!") + " " + a.t.title.Render("some checks do not pass")
	}
	out := []string{"", verdict, "  " + s.from.tally(n), ""}
	if w >= bothFrom-4 {
		rows := a.live.Map()
		out = append(out, a.mapOf(rows, nowhere, min(w, 110), 0, len(rows), nil)...)
	} else {
		out = append(out, a.stepList(-1, w)...)
	}
	for _, part := range [][]string{s.left(w), s.madeLines(w), s.kept(w), s.upcoming(w), s.onward(w)} {
		if len(part) > 0 {
			out = append(append(out, ""), part...)
		}
	}
	return out
}

// nothing reports whether nothing is left that this link created.
func (s *summary) nothing() bool { return s.made != nil && s.made.Empty() && leftTitle(s.made) == "" }

// left lists the cells that do not pass, by state. Within a state, the cells that block the most other cells come
// first.
func (s *summary) left(w int) []string {
	a := s.a
	var out []string
	for _, c := range a.live.Wrong(engine.Failed, engine.Unknown, engine.InProgress, engine.ToDo, engine.Warning) {
		text := a.live.Title(c, c) + ": " + a.foundOf(c)
		out = append(out, hang("  "+a.t.sign(a.live.Board.State(c))+" ", wrap(text, max(1, w-4)))...)
	}
	if out == nil {
		return nil
	}
	return append([]string{a.t.title.Render("Left to do")}, out...)
}

func (s *summary) madeLines(w int) []string {
	a := s.a
	head := a.t.title.Render("Created by this link")
	switch {
	case s.err != nil:
		return append([]string{head}, hang("  "+a.t.unknown.Render("?")+" ", wrap(oneLine(s.err.Error()), max(1, w-4)))...)
	case s.made == nil:
		return []string{head, "  " + a.t.faint.Render("searching")}
	}
	out, roles := []string{head}, 10
	for _, role := range a.live.Guide().Sides {
		roles = max(roles, width(role.Name))
	}
	for i := len(s.made.Actions) - 1; i >= 0; i-- {
		act := s.made.Actions[i]
		for _, it := range act.Change.Items {
			if !it.Verb.Changes() && !it.Held && !it.Left {
				continue
			}
			text := oneLine(it.What)
			if it.Held || it.Left {
				text += ": undo keeps it: " + oneLine(it.Note)
			}
			side := "  " + pad(a.live.Guide().Sides[act.Side].Name, roles) + " "
			out = append(out, hang(side, wrap(text, max(1, w-width(side))))...)
		}
	}
	if len(out) == 1 {
		out = append(out, "  "+a.t.faint.Render("nothing"))
	}
	return out
}

// kept lists what the last undo has kept because other programs created it.
func (s *summary) kept(w int) []string {
	a := s.a
	if !a.undid || a.run == nil || !a.run.Plan.Undo {
		return nil
	}
	var out []string
	for _, it := range a.run.Plan.ByOthers() {
		text := oneLine(it.What) + ": " + oneLine(it.Note)
		out = append(out, hang("  ", wrap(text, max(1, w-2)))...)
	}
	if out == nil {
		return nil
	}
	return append([]string{a.t.title.Render("Kept: created by other programs")}, out...)
}

// upcoming returns the times at which a verdict will change, such as when a credential expires.
func (s *summary) upcoming(w int) []string {
	a := s.a
	list := a.live.Dues(a.now())
	if len(list) == 0 {
		return nil
	}
	out := []string{a.t.title.Render("Expires")}
	out = append(
		out,
		hang(
			"  ", faint(a.t, wrap("these checks fail on the date shown, unless the credential is renewed:", max(1, w-2))),
		)...,
	)
	for _, d := range list {
		day := "  " + pad(d.At.Format("2 Jan 2006"), 11) + "  "
		out = append(out, hang(day, wrap(a.live.Title(d.Cell, d.Cell), max(1, w-width(day))))...)
	}
	return out
}

// onward returns the commands for working outside the wizard, and for the undo.
func (s *summary) onward(w int) []string {
	a := s.a
	out := []string{a.t.title.Render("Next")}
	column, widest := 0, 0
	for _, c := range s.next {
		column, widest = max(column, width(c.command)), max(widest, width(c.what))
	}
	for _, c := range s.next {
		if column+widest+4 <= w {
			out = append(out, "  "+pad(c.command, column)+"  "+a.t.faint.Render(c.what))
			continue
		}
		out = append(out, "  "+a.t.faint.Render(c.what+":"))
		out = append(out, hang("    ", wrap(c.command, max(1, w-4)))...)
	}
	if a.o.Passing {
		out = append(
			out, hang("  ", faint(a.t, wrap("These commands work from another terminal while this demo runs.", max(1, w-2))))...,
		)
	}
	return out
}
