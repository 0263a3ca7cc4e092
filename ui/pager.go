package ui

import (
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// pager is a panel of text with scrolling and search. It formats the text on each draw, so that the text is always up
// to date and fits the current width.
type pager struct {
	a      *app
	title  string
	text   func(w int) []string
	copy   func() string            // text for the copy key; nil copies the whole text
	file   func() string            // text for the save key; default: the text for the copy key
	kind   string                   // part of the saved file's name; default: from the title
	hints  func() []hint            // additional hints, or nil
	more   func(tea.KeyMsg) tea.Cmd // additional keys, or nil
	dress  func(shown []string, from int) (where string)
	search search
	from   int  // first visible line that the user scrolled to
	shown  int  // first visible line as last drawn
	high   int  // available lines; 0 means the height of a panel
	end    bool // start at the end
}

func (a *app) pager(title string, text func(w int) []string) *pager {
	return &pager{a: a, title: title, text: text, search: newSearch(a.t)}
}

func (p *pager) typing() bool { return p.search.typing() }

// pace returns the pace of the page below, because changes on that page can appear on this panel.
func (p *pager) pace() time.Duration {
	if p.a.page == nil {
		return 0
	}
	return p.a.page.pace()
}

func (p *pager) room() int {
	if p.high > 0 {
		return p.high
	}
	return p.a.panelHeight()
}

func (p *pager) lines() []string { return p.text(max(1, p.a.w-2)) }

func (p *pager) update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	switch {
	case !ok:
		return p.search.other(msg)
	case p.typing():
		return p.typed(k)
	case p.scroll(k):
		p.end = false
		return nil
	case p.seek(k):
		p.end = false
		return nil
	}
	keys := p.a.k
	switch {
	case key.Matches(k, keys.Esc.Binding) && p.search.on():
		p.search.clear()
	case key.Matches(k, keys.Esc.Binding), key.Matches(k, keys.Open.Binding):
		p.a.lift()
	case key.Matches(k, keys.Filter.Binding):
		return p.search.begin(p.shown)
	case key.Matches(k, keys.Copy.Binding):
		return p.a.copyOr(p.copied(), p.saveKind())
	case key.Matches(k, keys.Save.Binding):
		return p.a.saveText(p.saveKind(), p.saved())
	case p.more != nil:
		return p.more(k)
	}
	return nil
}

// scroll handles a scrolling key. It reports whether k is a scrolling key.
func (p *pager) scroll(k tea.KeyMsg) bool {
	keys, page, to := p.a.k, max(1, p.room()-1), p.shown
	switch {
	case key.Matches(k, keys.Up.Binding):
		to--
	case key.Matches(k, keys.Down.Binding):
		to++
	case key.Matches(k, keys.PageUp.Binding):
		to -= page
	case key.Matches(k, keys.PageDown.Binding), k.String() == " ":
		to += page
	case key.Matches(k, keys.Top.Binding):
		to = 0
	case key.Matches(k, keys.Bottom.Binding):
		to = len(p.lines())
	default:
		return false
	}
	p.from = max(0, min(to, len(p.lines())-p.room()))
	p.shown = p.from
	return true
}

// bring scrolls to a line, as far as the text allows.
func (p *pager) bring(line int) {
	p.from = max(0, min(line, len(p.lines())-p.room()))
	p.shown, p.end = p.from, false
}

func (p *pager) copied() string {
	if p.copy != nil {
		return p.copy()
	}
	return ansi.Strip(strings.Join(p.lines(), "\n"))
}

func (p *pager) saved() string {
	if p.file != nil {
		return p.file()
	}
	return p.copied()
}

func (p *pager) saveKind() string {
	if p.kind != "" {
		return p.kind
	}
	return strings.ToLower(strings.Fields(p.title + " text")[0])
}

// body returns at most h visible lines. A temporarily larger screen does not change the scroll position.
func (p *pager) body(lines []string, h int) []string {
	last := max(0, len(lines)-h)
	p.shown = max(0, min(p.from, last))
	if p.end {
		p.shown = last
	}
	return slices.Clone(lines[p.shown:min(len(lines), p.shown+max(0, h))])
}

func (p *pager) view() []string {
	lines, h := p.lines(), p.room()
	shown := p.body(lines, h)
	var where []string
	if p.dress != nil {
		where = append(where, p.dress(shown, p.shown))
	}
	if len(lines) > h {
		where = append(where, positions(p.shown, len(shown), len(lines)))
	}
	for i := range shown {
		more := p.shown+i+1 < len(lines) && strings.TrimSpace(lines[p.shown+i+1]) != ""
		shown[i] = " " + p.search.mark(p.a.term.linked(shown[i], more), p.shown+i)
	}
	return p.a.panelFrame(
		p.title, strings.Join(slices.DeleteFunc(where, func(s string) bool { return s == "" }), " · "), shown,
		p.foot(len(lines) > h),
	)
}

func (p *pager) foot(scrolls bool) string {
	keys := p.a.k
	switch {
	case p.a.notice != "":
		return " " + p.a.notice
	case p.typing():
		return p.search.line(p.lines(), p.a.w)
	case p.search.on():
		return p.a.footer(
			[]hint{keys.Hit.as(p.search.tally(p.lines())), keys.HitBack.hint()}, []hint{keys.Esc.as("end the search")},
		)
	}
	var first []hint
	if p.hints != nil {
		first = p.hints()
	}
	if scrolls {
		first = append([]hint{{"↑↓", "scroll"}}, append(slices.Clone(first), keys.Filter.as("search"))...)
	}
	return p.a.footer(append(slices.Clone(first), keys.Copy.hint(), keys.Save.as("save")), []hint{keys.Esc.hint()})
}
