package ui

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// takenNameMsg is for the page of the sides: whether a link file of that name
// is there already, and what it holds.
type takenNameMsg struct {
	name string
	link *linkfile.Link // nil: no such file
	err  error          // it is there and is no link of these guides
}

// advance goes on to the first stage that has nothing chosen yet, and makes
// its text field ready.
func (p *sides) advance() tea.Cmd {
	for !p.naming() && !p.spec[p.side()].IsZero() {
		p.stage++
	}
	switch {
	case p.naming():
		p.input.SetValue(p.draft)
		if p.draft == "" {
			p.input.SetValue(p.suggestion())
		}
		p.input.CursorEnd()
		return p.input.Focus()
	case p.onHost():
		p.input.SetValue("/")
		p.input.CursorEnd()
		return p.input.Focus()
	}
	p.atFree()
	return nil
}

// suggestion is a name for the link, made of the names of both sides without
// what both begin with: kind-milan and kind-rome give milan-rome.
func (p *sides) suggestion() string {
	if p.name != "" {
		return p.name
	}
	if p.a.o.Name != "" {
		return p.a.o.Name
	}
	return engine.SuggestLinkName(p.guide.Name, p.sideName(steps.Local), p.sideName(steps.Remote))
}

// sideName is what a link's name takes its words from.
func (p *sides) sideName(side steps.Side) string {
	if p.spec[side].Host != nil || p.spec[side].Facts != "" {
		return p.guide.Sides[side].Name
	}
	return p.spec[side].Context
}

// entered takes what was typed: a host's folder, or the name of the link.
func (p *sides) entered() tea.Cmd {
	typed := strings.TrimSpace(p.input.Value())
	if p.onHost() {
		if !strings.HasPrefix(typed, "/") {
			p.said = "an absolute path: / is this machine, another folder stands for one"
			return nil
		}
		p.spec[p.side()] = linkfile.EndSpec{Host: &linkfile.HostSpec{Root: typed}}
		p.stage++
		return p.advance()
	}
	if err := linkfile.CheckName(typed); err != nil {
		p.said = err.Error()
		return nil
	}
	p.busy = true
	path, known := p.a.o.LinkPath(typed), p.a.o.Guides
	return func() tea.Msg {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return takenNameMsg{name: typed}
		}
		l, err := linkfile.Load(path, known)
		return takenNameMsg{typed, l, err}
	}
}

// tookName opens the link: a new one, or the one that has that name if it
// joins the same two sides.
func (p *sides) tookName(m takenNameMsg) tea.Cmd {
	path := p.a.o.LinkPath(m.name)
	switch {
	case m.err != nil:
		p.busy, p.said = false, oneLine(m.err.Error())
		return nil
	case m.link == nil:
		l := linkfile.New(p.guide.Name, m.name)
		l.Path = path
		for side, spec := range p.spec {
			*l.Side(side) = spec
		}
		return p.a.open(l, false)
	case m.link.Guide == p.guide.Name && sameSides(m.link, p.spec):
		return p.a.open(m.link, true)
	}
	p.busy, p.said = false, oneLine(path)+" is there already and joins something else; choose another name"
	return nil
}

func sameSides(l *linkfile.Link, spec map[steps.Side]linkfile.EndSpec) bool {
	for _, side := range steps.Sides {
		have, want := l.Side(side), spec[side]
		if have.Context != want.Context || have.Facts != want.Facts || (have.Host == nil) != (want.Host == nil) {
			return false
		}
		if have.Host != nil && have.Host.Root != want.Host.Root {
			return false
		}
	}
	return true
}
