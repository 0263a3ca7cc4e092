package ui

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// takenNameMsg is for the page of the sides: whether a link file of that name
// is there already, and what it holds.
type takenNameMsg struct {
	name string
	link *steps.Link // nil: no such file
	err  error       // it is there and is no link of these guides
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
	if p.a.o.Name != "" {
		return p.a.o.Name
	}
	local, remote := p.words(steps.Local), p.words(steps.Remote)
	for len(local) > 1 && len(remote) > 1 && local[0] == remote[0] {
		local, remote = local[1:], remote[1:]
	}
	name := strings.Join(append(append([]string{}, local...), remote...), "-")
	if name == "" {
		name = p.guide.Name
	}
	return strings.Trim(name[:min(len(name), steps.MaxLinkName)], "-")
}

// words are the words of a side's name that a link's name may have.
func (p *sides) words(side steps.Side) []string {
	name := p.spec[side].Context
	if p.spec[side].Host != nil {
		name = p.guide.Sides[side].Name
	}
	if i := strings.LastIndexAny(name, "/@:"); i >= 0 && i+1 < len(name) {
		name = name[i+1:] // ARNs and user@cluster: the cluster says more
	}
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// entered takes what was typed: a host's folder, or the name of the link.
func (p *sides) entered() tea.Cmd {
	typed := strings.TrimSpace(p.input.Value())
	if p.onHost() {
		if !strings.HasPrefix(typed, "/") {
			p.said = "an absolute path: / is this machine, another folder stands for one"
			return nil
		}
		p.spec[p.side()] = steps.EndSpec{Host: &steps.HostSpec{Root: typed}}
		p.stage++
		return p.advance()
	}
	if err := steps.CheckLinkName(typed); err != nil {
		p.said = err.Error()
		return nil
	}
	p.busy = true
	path, known := p.a.o.LinkPath(typed), p.a.o.Guides
	return func() tea.Msg {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return takenNameMsg{name: typed}
		}
		l, err := steps.LoadLink(path, known)
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
		l := steps.NewLink(p.guide.Name, m.name)
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

func sameSides(l *steps.Link, spec map[steps.Side]steps.EndSpec) bool {
	for _, side := range steps.Sides {
		have, want := l.Side(side), spec[side]
		if have.Context != want.Context || (have.Host == nil) != (want.Host == nil) {
			return false
		}
		if have.Host != nil && have.Host.Root != want.Host.Root {
			return false
		}
	}
	return true
}
