package ui

import (
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"carrick/steps"
)

// typedNumber is a step number that the user types digit by digit.
type typedNumber struct {
	n  int
	at time.Time // time of the last digit
}

// digitsWithin is the maximum pause between two digits.
const digitsWithin = time.Second

// typed adds a digit and returns the resulting number. It appends the digit to the previous number if that number is
// recent and the result is at most limit.
func (t *typedNumber) typed(digit, limit int, now time.Time) int {
	n := digit
	if both := t.n*10 + digit; t.n > 0 && now.Sub(t.at) < digitsWithin && both <= limit {
		n = both
	}
	*t = typedNumber{n, now}
	return n
}

// jump goes to the step with the typed number. The number after the last step is the summary.
func (p *stepPage) jump(k tea.KeyMsg) tea.Cmd {
	last := len(p.guide().Steps) + 1
	n := p.number.typed(int(k.Runes[0]-'0'), last, p.a.now())
	switch {
	case n == 0:
		return nil
	case n > last:
		p.a.notice = "there are " + steps.Plural(last-1, "step")
		return nil
	}
	return p.enter(n - 1)
}

// stepPage returns the step page, even while the summary is shown. If there is no step page yet, it returns nil.
func (a *app) stepPage() *stepPage {
	switch page := a.page.(type) {
	case *stepPage:
		return page
	case *summary:
		return page.from
	}
	return nil
}

// stepsPanel is the list of steps for screens that cannot show the list next to the checks.
type stepsPanel struct {
	p   *stepPage
	row cursor
}

func newStepsPanel(p *stepPage) *stepsPanel {
	s := &stepsPanel{p: p}
	s.row.at = p.at
	if _, ok := p.a.page.(*summary); ok {
		s.row.at = len(p.guide().Steps)
	}
	return s
}

func (s *stepsPanel) typing() bool        { return false }
func (s *stepsPanel) pace() time.Duration { return s.p.pace() }

func (s *stepsPanel) update(msg tea.Msg) tea.Cmd {
	k, ok := msg.(tea.KeyMsg)
	a := s.p.a
	switch {
	case !ok, s.row.move(k, a.k, len(s.p.guide().Steps)+1, a.panelHeight()):
	case key.Matches(k, a.k.Open.Binding, a.k.Next.Binding):
		a.lift()
		return s.p.enter(s.row.at)
	case key.Matches(k, a.k.Everything.Binding):
		a.lift()
		return s.p.applyAll()
	case key.Matches(k, a.k.Esc.Binding, a.k.Steps.Binding, a.k.Back.Binding):
		a.lift()
	case key.Matches(k, a.k.Jump.Binding, a.k.Digit.Binding):
		a.lift()
		return s.p.jump(k)
	}
	return nil
}

func (s *stepsPanel) view() []string {
	a := s.p.a
	lines := a.stepList(-1, a.w-1)
	lines = append(lines, "   "+pad("", len(strconv.Itoa(len(lines))))+"   Summary")
	s.row.at = min(s.row.at, len(lines)-1)
	lines[s.row.at] = " " + a.t.accent.Render("▸") + " " +
		a.t.selected.Render(strings.TrimPrefix(ansi.Strip(lines[s.row.at]), "   "))
	from, to := s.row.window(len(lines), a.panelHeight())
	right := ""
	if to-from < len(lines) {
		right = positions(from, to-from, len(lines))
	}
	first := append([]hint{a.k.Open.as("go there"), {"↑↓", "move"}}, a.applyAllHint()...)
	foot := a.footer(append(first, a.k.Jump.hint()), []hint{a.k.Esc.hint()})
	return a.panelFrame("Steps", right, lines[from:to], foot)
}

// mostEarly is the maximum number of keys that are kept before the first step is on screen.
const mostEarly = 32

// tooEarly keeps a key that was pressed before the first step is on screen, and reports whether it did. At that time
// the link is being opened, or the checks run for the first time. catchUp replays the key.
func (a *app) tooEarly(k tea.KeyMsg) bool {
	if len(a.panels) > 0 {
		return false
	}
	switch page := a.page.(type) {
	case *opening:
		if page.err != nil {
			return false
		}
	case *standing:
		if key.Matches(k, a.k.Open.Binding, a.k.Next.Binding) {
			return false
		}
	default:
		return false
	}
	if len(a.early) < mostEarly {
		a.early = append(a.early, k)
	}
	return true
}

// catchUp replays the keys from tooEarly once the first step is on screen.
func (a *app) catchUp() tea.Cmd {
	if _, ok := a.page.(*stepPage); !ok || len(a.early) == 0 {
		return nil
	}
	keys := a.early
	a.early = nil
	var cmds []tea.Cmd
	for _, k := range keys {
		cmds = append(cmds, a.pressed(k))
	}
	return tea.Batch(cmds...)
}
