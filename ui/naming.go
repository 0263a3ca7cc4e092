package ui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps/linkfile"
)

// takenNameMsg contains the new or existing link with the entered name.
type takenNameMsg struct {
	link     *linkfile.Link
	existing bool
	err      error // the name belongs to another link
}

// advance goes to the next stage whose choice is missing and prepares its text field.
func (p *sides) advance() tea.Cmd {
	for !p.naming() && !p.spec[p.side()].IsZero() {
		p.stage++
	}
	switch {
	case p.naming():
		p.input.SetValue(p.draft)
		if p.draft == "" {
			p.input.SetValue(p.spec.Suggest(p.guide, p.name, p.a.o.Name))
		}
		p.input.CursorEnd()
		return p.input.Focus()
	case p.onHost():
		p.input.SetValue("/")
		p.input.CursorEnd()
		return p.input.Focus()
	}
	p.row.at = p.spec.Likely(p.list, p.side())
	return nil
}

// entered accepts the typed directory of a host, or the typed name of the link.
func (p *sides) entered() tea.Cmd {
	typed := strings.TrimSpace(p.input.Value())
	if p.onHost() {
		if !strings.HasPrefix(typed, "/") {
			p.said = "an absolute path: / is this machine, another directory represents one"
			return nil
		}
		p.spec[p.side()] = linkfile.EndpointSpec{Host: &linkfile.HostSpec{Root: typed}}
		p.stage++
		return p.advance()
	}
	if err := linkfile.CheckName(typed); err != nil {
		p.said = err.Error()
		return nil
	}
	p.busy = true
	return func() tea.Msg {
		l, existing, err := p.a.o.NewLink(p.guide, typed, p.spec)
		return takenNameMsg{l, existing, err}
	}
}

// tookName opens the link. If a link with that name already connects the same two sides, it opens the existing link.
func (p *sides) tookName(m takenNameMsg) tea.Cmd {
	if m.err != nil {
		p.busy, p.said = false, oneLine(m.err.Error())
		return nil
	}
	return p.a.open(m.link, m.existing)
}
