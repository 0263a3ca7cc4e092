package ui

import (
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// pager is a panel of text that scrolls. Its text is made for the width that
// there is, each time it is drawn, so it stays true while it is open.
type pager struct {
	a     *app
	title string
	text  func(w int) []string
	copy  func() string // what the copy key copies; nil: the text
	hints []hint
	more  func(tea.KeyMsg) tea.Cmd // keys of its own; nil: none
	from  int
	end   bool // begin at the end
}

func (a *app) pager(title string, text func(w int) []string) *pager {
	return &pager{a: a, title: title, text: text}
}

func (p *pager) typing() bool        { return false }
func (p *pager) pace() time.Duration { return 0 }

func (p *pager) lines() []string { return p.text(max(1, p.a.w-2)) }

func (p *pager) update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	if !ok {
		return nil
	}
	keys := p.a.k
	page := max(1, p.a.panelHeight()-1)
	switch {
	case key.Matches(k, keys.Esc.Binding), key.Matches(k, keys.Open.Binding):
		p.a.lift()
		return nil
	case key.Matches(k, keys.Up.Binding):
		p.from--
	case key.Matches(k, keys.Down.Binding):
		p.from++
	case key.Matches(k, keys.PageUp.Binding):
		p.from -= page
	case key.Matches(k, keys.PageDown.Binding), k.String() == " ":
		p.from += page
	case key.Matches(k, keys.Top.Binding):
		p.from = 0
	case key.Matches(k, keys.Bottom.Binding):
		p.from = len(p.lines())
	case key.Matches(k, keys.Copy.Binding):
		return p.a.copy(p.copied())
	case p.more != nil:
		return p.more(k)
	}
	p.from = max(0, min(p.from, len(p.lines())-p.a.panelHeight()))
	p.end = false
	return nil
}

func (p *pager) copied() string {
	if p.copy != nil {
		return p.copy()
	}
	return ansi.Strip(strings.Join(p.lines(), "\n"))
}

func (p *pager) view() []string {
	lines, h := p.lines(), p.a.panelHeight()
	last := max(0, len(lines)-h)
	if p.end {
		p.from = last
	}
	p.from = min(p.from, last)
	shown := lines[p.from:min(len(lines), p.from+h)]
	body := make([]string, len(shown))
	for i := range shown {
		body[i] = " " + shown[i]
	}
	right := ""
	if len(lines) > h {
		right = positions(p.from, len(shown), len(lines))
	}
	return p.a.panelFrame(p.title, right, body, p.foot(len(lines) > h))
}

func (p *pager) foot(scrolls bool) string {
	if p.a.notice != "" {
		return " " + p.a.notice
	}
	keys := p.a.k
	first := p.hints
	if scrolls {
		first = append([]hint{{"↑↓", "scroll"}}, first...)
	}
	return p.a.footer(append(first, keys.Copy.hint()), []hint{keys.Esc.hint()})
}
