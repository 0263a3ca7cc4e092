package ui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"carrick/steps"
)

// search is a case-insensitive search in scrolling text.
type search struct {
	input  textinput.Model
	hit    lipgloss.Style // style of every match
	inHand lipgloss.Style // style of the matches in the current line
	at     int            // the current line, or -1
	origin int            // the line where the search started
}

func newSearch(t theme) search {
	s := search{input: textinput.New(), hit: t.title.Underline(true), inHand: t.selected, at: -1}
	s.input.Prompt = "/ "
	s.input.PromptStyle, s.input.TextStyle = t.renderer.NewStyle(), t.renderer.NewStyle()
	s.input.Cursor.Style = t.selected
	return s
}

func (s *search) typing() bool { return s.input.Focused() }

// want returns the text to search for, or "".
func (s *search) want() string { return oneLine(strings.ToLower(s.input.Value())) }

func (s *search) on() bool { return s.want() != "" }

func (s *search) begin(from int) tea.Cmd {
	s.clear()
	s.origin = from
	return s.input.Focus()
}

func (s *search) clear() {
	s.input.Reset()
	s.input.Blur()
	s.at = -1
}

// other handles a message that is not a key, such as the blinking of the cursor in the search field.
func (s *search) other(msg tea.Msg) tea.Cmd {
	if !s.typing() {
		return nil
	}
	var cmd tea.Cmd
	s.input, cmd = s.input.Update(msg)
	return cmd
}

// lines returns the indices of the lines that contain the searched text. If wrapping has split a match, it returns the
// line where the match begins.
func (s *search) lines(text []string) []int {
	want := s.want()
	if want == "" {
		return nil
	}
	plain := make([]string, len(text)+1)
	for i, l := range text {
		plain[i] = oneLine(strings.ToLower(ansi.Strip(l)))
	}
	var out []int
	for i := range text {
		here := strings.Contains(plain[i], want)
		broken := !here && !strings.Contains(plain[i+1], want) && strings.Contains(plain[i]+" "+plain[i+1], want)
		if here || broken {
			out = append(out, i)
		}
	}
	return out
}

// next returns the line of the next match after the given line. If back is true, it returns the match before the given
// line. If there is no match, line is -1. If the search wrapped around, around is true.
func (s *search) next(text []string, after int, back bool) (line int, around bool) {
	found := s.lines(text)
	if len(found) == 0 {
		return -1, false
	}
	if back {
		for i := len(found) - 1; i >= 0; i-- {
			if found[i] < after {
				return found[i], false
			}
		}
		return found[len(found)-1], true
	}
	for _, l := range found {
		if l > after {
			return l, false
		}
	}
	return found[0], true
}

// tally returns the hint with the position of the current match, such as "next (line 2 of 7)".
func (s *search) tally(text []string) string {
	found := s.lines(text)
	for i, l := range found {
		if l == s.at {
			return fmt.Sprintf("next (line %d of %d)", i+1, len(found))
		}
	}
	if len(found) == 0 {
		return "next (no line has this text)"
	}
	return "next (of " + steps.Plural(len(found), "line") + ")"
}

// line returns the search field with the number of matching lines.
func (s *search) line(text []string, w int) string {
	said := ""
	switch n := len(s.lines(text)); {
	case !s.on():
		said = "type the text to find; esc cancels"
	case n == 0:
		said = "no line has this text"
	default:
		said = "in " + steps.Plural(n, "line") + "; enter keeps it"
	}
	s.input.Width = max(4, min(30, w-width(said)-8))
	return " " + s.input.View() + "  " + said
}

// mark highlights the matches in a line. The matches in the current line get a stronger style.
func (s *search) mark(line string, at int) string {
	if !s.on() {
		return line
	}
	style := s.hit
	if at == s.at {
		style = s.inHand
	}
	plain := ansi.Strip(line)
	lower, want := strings.ToLower(plain), s.want()
	if len(lower) != len(plain) {
		return line // ToLower changed the length, so the match cannot be located in the line
	}
	out, done := "", 0 // done is the number of columns of line that out contains
	for from := 0; ; {
		i := strings.Index(lower[from:], want)
		if i < 0 {
			break
		}
		i += from
		from = i + len(want)
		start, end := width(plain[:i]), width(plain[:from])
		out += ansi.Cut(line, done, start) + style.Render(plain[i:from])
		done = end
	}
	if done == 0 {
		if at == s.at && out == "" {
			return s.inHand.Render("▸") + ansi.Cut(line, 1, width(line)) // the match continues on the next line
		}
		return line
	}
	return out + ansi.Cut(line, done, width(line))
}

// typed passes a key to the field. The search is incremental.
func (p *pager) typed(k tea.KeyMsg) tea.Cmd {
	s := &p.search
	switch {
	case key.Matches(k, p.a.k.Esc.Binding):
		s.clear()
		p.bring(s.origin)
		return nil
	case key.Matches(k, p.a.k.Open.Binding):
		s.input.Blur()
		return nil
	}
	var cmd tea.Cmd
	s.input, cmd = s.input.Update(k)
	if s.at, _ = s.next(p.lines(), s.origin-1, false); s.at >= 0 {
		p.reveal(s.at)
	}
	return cmd
}

// seek handles the keys for the next and previous match. It reports whether k is such a key.
func (p *pager) seek(k tea.KeyMsg) bool {
	s, back := &p.search, key.Matches(k, p.a.k.HitBack.Binding)
	if !s.on() || (!back && !key.Matches(k, p.a.k.Hit.Binding)) {
		return false
	}
	line, around := s.next(p.lines(), s.at, back)
	switch {
	case line < 0:
		p.a.notice = "no line has this text"
		return true
	case around && back:
		p.a.notice = "from the end again"
	case around:
		p.a.notice = "from the start again"
	}
	s.at = line
	p.reveal(line)
	return true
}

// reveal makes a line visible and scrolls as little as possible.
func (p *pager) reveal(line int) {
	h := p.room()
	if line < p.shown || line >= p.shown+h {
		p.bring(line - h/3)
	}
	p.end = false
}
