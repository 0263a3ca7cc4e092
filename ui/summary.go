package ui

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// summary is the last page: where each step stands, what was made and what is
// left to do, what comes up when, how to go on and how to go back.
type summary struct {
	a      *app
	from   *stepPage
	made   *steps.Plan // what undo would take back: what this link made
	err    error
	scroll *pager
}

// takenMsg is for the summary: what this link made.
type takenMsg struct {
	plan *steps.Plan
	err  error
}

func (s *summary) typing() bool { return false }

func (s *summary) pace() time.Duration {
	if done, all := s.a.live.looked(); done < all {
		return spinning
	}
	return 0
}

func (s *summary) about() string { return "What stands, what is left, and how to go on." }

func (s *summary) begin() tea.Cmd {
	s.scroll = s.a.pager("", s.lines)
	ctx, session := s.a.ctx, s.a.live.session
	made := func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, planWithin)
		defer cancel()
		plan, err := session.PlanUndo(ctx, steps.Scope{})
		return takenMsg{plan, err}
	}
	return tea.Batch(made, s.a.live.sweepQuiet())
}

func (s *summary) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case takenMsg:
		s.made, s.err = msg.plan, msg.err
	case answersMsg, plannedMsg, savedMsg:
		return s.from.update(msg)
	case tea.KeyMsg:
		keys := s.a.k
		switch {
		case key.Matches(msg, keys.Back.Binding, keys.Esc.Binding):
			return s.a.turn(s.from)
		case key.Matches(msg, keys.Jump.Binding):
			return s.from.jump(msg)
		case key.Matches(msg, keys.Save.Binding):
			return s.a.save()
		case key.Matches(msg, keys.All.Binding):
			return s.a.live.again()
		case key.Matches(msg, keys.Undo.Binding): // what is done is shown on a step's page
			return tea.Batch(s.a.turn(s.from), s.from.ask(toUndo, "all that this link made", steps.Scope{}))
		case key.Matches(msg, keys.Open.Binding):
			return s.from.enter(s.a.live.firstOpen())
		}
		return s.scroll.update(msg)
	}
	return nil
}

func (s *summary) view() []string {
	a := s.a
	out := []string{a.headline(a.live.session.Guide().Title, a.where(len(a.live.session.Guide().Steps)))}
	if a.h >= middleFrom {
		out = append(out, a.sidesLine())
	}
	out = append(out, a.rule())
	h := a.h - len(out) - 2
	lines := s.lines(a.w - 2)
	s.scroll.from = max(0, min(s.scroll.from, len(lines)-h))
	for _, l := range lines[s.scroll.from:min(len(lines), s.scroll.from+max(0, h))] {
		out = append(out, " "+l)
	}
	out = append(fill(out, a.h-2), a.rule())
	if a.notice != "" {
		return append(out, " "+a.notice)
	}
	first := []hint{a.k.Back.hint(), a.k.Undo.as("undo all"), a.k.Save.as("save a report"), a.k.Jump.hint(), a.k.All.hint()}
	return append(out, a.footer(first, []hint{a.k.Help.hint(), a.k.Quit.hint()}))
}

func (s *summary) lines(w int) []string {
	a := s.a
	n := a.live.board.Count("")
	verdict := a.t.good.Render("✓") + " " + a.t.title.Render("all is green")
	if !n.Green() {
		verdict = a.t.warn.Render("!") + " " + a.t.title.Render("not all is green") + "  " + s.from.tally(n)
	}
	out := []string{"", verdict, ""}
	out = append(out, a.stepList(-1, w)...)
	for _, part := range [][]string{s.left(w), s.madeLines(w), s.upcoming(w), s.onward()} {
		if len(part) > 0 {
			out = append(append(out, ""), part...)
		}
	}
	return out
}

// left are the cells that fail by themselves.
func (s *summary) left(w int) []string {
	a := s.a
	var out []string
	for _, c := range a.live.session.Guide().Cells() {
		r := a.live.board.Verdict(c)
		if r.Status != steps.Fail && r.Status != steps.Unknown {
			continue
		}
		check, _ := a.live.session.Guide().Check(c.Check)
		text := fmt.Sprintf("%s: %s: %s", a.live.session.Guide().Sides[c.Side].Name, check.Title, oneLine(r.Found))
		out = append(out, hang("  "+a.t.ink(r.Status).Render(glyph(r.Status))+" ", wrap(text, max(1, w-4)))...)
	}
	if out == nil {
		return nil
	}
	return append([]string{a.t.title.Render("Left to do")}, out...)
}

// madeLines are the things that this link made.
func (s *summary) madeLines(w int) []string {
	a := s.a
	head := a.t.title.Render("Made by this link")
	switch {
	case s.err != nil:
		return append([]string{head}, hang("  "+a.t.unknown.Render("?")+" ", wrap(oneLine(s.err.Error()), max(1, w-4)))...)
	case s.made == nil:
		return []string{head, "  " + a.t.faint.Render("looking")}
	}
	out := []string{head}
	for i := len(s.made.Actions) - 1; i >= 0; i-- {
		act := s.made.Actions[i]
		for _, it := range act.Change.Items {
			if it.Verb.Changes() {
				out = append(out, clip("  "+pad(a.live.session.Guide().Sides[act.Side].Name, 10)+" "+oneLine(it.What), w))
			}
		}
	}
	if len(out) == 1 {
		out = append(out, "  "+a.t.faint.Render("nothing"))
	}
	return out
}

// upcoming are the moments at which a verdict is due by itself, such as the
// end of a credential's life.
func (s *summary) upcoming(w int) []string {
	a := s.a
	type due struct {
		at   time.Time
		text string
	}
	var list []due
	for _, c := range a.live.session.Guide().Cells() {
		r := a.live.board.Verdict(c)
		if r.Again.IsZero() || r.Again.Sub(a.now()) < 24*time.Hour {
			continue
		}
		check, _ := a.live.session.Guide().Check(c.Check)
		list = append(list, due{r.Again, a.live.session.Guide().Sides[c.Side].Name + ": " + check.Title})
	}
	if len(list) == 0 {
		return nil
	}
	sort.Slice(list, func(i, j int) bool { return list[i].at.Before(list[j].at) })
	out := []string{a.t.title.Render("Comes up")}
	for _, d := range list {
		out = append(out, clip("  "+d.at.Format("2 Jan 2006")+"  "+d.text, w))
	}
	return out
}

// onward says how to go on without the screen, and how to go back.
func (s *summary) onward() []string {
	a := s.a
	out := []string{a.t.title.Render("From here")}
	for _, c := range a.commands(a.live.session.Link()) {
		out = append(out, "  "+pad(c.command, 15+width(a.shortPath(a.live.session.Link().Path)))+" "+a.t.faint.Render(c.what))
	}
	return out
}
