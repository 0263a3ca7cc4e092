package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui/model"
)

type openedMsg struct {
	session *engine.Session
	resumed bool
	err     error
}

// open connects to the sides of a link. If the link is new, open then saves it.
func (a *app) open(l *linkfile.Link, resumed bool) tea.Cmd {
	return func() tea.Msg {
		s, err := a.o.Connect(l, resumed)
		return openedMsg{s, resumed, err}
	}
}

// opened starts the live part of the wizard once the session is open.
func (a *app) opened(m openedMsg) tea.Cmd {
	if m.err != nil {
		a.trouble(m.err)
		return a.page.update(m)
	}
	a.live = model.NewLive(a.ctx, m.session)
	start := tea.Batch(a.follow(a.live.Start()...), a.follow(a.live.LivenessTurns()...))
	if m.resumed {
		return tea.Batch(start, a.turn(&standing{a: a}))
	}
	return tea.Batch(start, a.turn(newStepPage(a, 0)))
}

// firstPage returns the page that opens the given link, or the page for the first choice that the user must make.
func (a *app) firstPage() screen {
	if a.o.Link != nil {
		return &opening{a: a}
	}
	if g := a.o.Named(); g != nil {
		return newSidesPage(a, g)
	}
	return &guides{a: a}
}

// opening is the page that is shown while an existing link is opened. If that fails, it shows the error.
type opening struct {
	a   *app
	err error
}

func (p *opening) typing() bool        { return false }
func (p *opening) pace() time.Duration { return 0 }
func (p *opening) begin() tea.Cmd      { return p.a.open(p.a.o.Link, true) }

func (p *opening) update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(openedMsg); ok {
		p.err = m.err
	}
	return nil
}

func (p *opening) view() []string {
	a := p.a
	lines := []string{a.headline("", oneLine(a.o.Link.Name())), a.rule(), ""}
	if p.err == nil {
		lines = append(lines, " opening "+oneLine(a.o.Link.Path))
	} else {
		sign := " " + a.t.bad.Render(engine.Failed.Glyph()) + " "
		lines = append(lines, hang(sign, wrap(oneLine(p.err.Error()), max(1, a.w-4)))...)
	}
	return append(fill(lines, a.h-1), a.footer(nil, []hint{a.k.Quit.hint()}))
}

// standing is the page that is shown while the checks of a resumed link run for the first time. It then continues
// automatically to the first step that is not green.
type standing struct{ a *app }

func (p *standing) typing() bool        { return false }
func (p *standing) pace() time.Duration { return spinning }

func (p *standing) boardMoved() tea.Cmd {
	if done, all := p.a.live.Looked(); done < all {
		return nil
	}
	return p.goOn()
}

// goOn opens the step of the first cause with the cursor on that cause. Without a cause it opens the first step that is
// not green.
func (p *standing) goOn() tea.Cmd {
	page := newStepPage(p.a, p.a.live.FirstOpen())
	if c, ok := p.a.live.FirstCause(); ok {
		page.selectCell(c)
	}
	return p.a.turn(page)
}

func (p *standing) update(msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyMsg); ok && key.Matches(k, p.a.k.Open.Binding, p.a.k.Next.Binding) {
		return p.goOn()
	}
	return nil
}

func (p *standing) view() []string {
	a := p.a
	done, all := a.live.Looked()
	link := a.live.Session.Link()
	lines := []string{
		a.headline(a.live.Guide().Title, oneLine(link.Name())), a.sidesLine(), a.rule(), "",
		fmt.Sprintf(" %s checking both sides: %d of %d checks", a.t.accent.Render(a.spin()), done, all), "",
	}
	lines = append(lines, a.stepList(-1, a.w-2)...)
	return append(fill(lines, a.h-1), a.footer([]hint{a.k.Open.as("continue now")}, []hint{a.k.Quit.hint()}))
}

// stepList returns a line for each step with its state, title and counts. at is the index of the current step.
func (a *app) stepList(at, w int) []string {
	guide := a.live.Guide()
	titles, numbers := 0, width(strconv.Itoa(len(guide.Steps)))
	for i := range guide.Steps {
		titles = max(titles, width(guide.Steps[i].Title))
	}
	var out []string
	for i := range guide.Steps {
		s := &guide.Steps[i]
		state := a.live.State(s.Name)
		mark := " "
		if i == at {
			mark = "▸"
		}
		line := fmt.Sprintf(" %s %s %*d %s", mark, a.t.sign(state), numbers, i+1, pad(s.Title, titles))
		if rest := w - width(line) - 3; rest > 12 {
			line += "   " + a.t.faint.Render(clip(a.live.Board.Count(s.Name).String(), rest))
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	return out
}
