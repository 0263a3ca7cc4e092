package ui

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"carrick/steps"
)

// theme is every style of the screen. Colours are of the terminal's own 16, on
// glyphs and short words; text keeps the terminal's own colour, so it reads on
// any background.
type theme struct {
	renderer *lipgloss.Renderer

	title    lipgloss.Style // headings
	faint    lipgloss.Style // what can be left out
	key      lipgloss.Style // a key in the footer
	selected lipgloss.Style // where the user stands
	accent   lipgloss.Style // what can be chosen, what moves
	good     lipgloss.Style
	bad      lipgloss.Style
	warn     lipgloss.Style
	unknown  lipgloss.Style

	plain *strings.Replacer // last of all, over the whole frame; nil: nothing
}

// letters says which characters the terminal can show.
type letters int

const (
	anyLetter letters = iota
	plainLine         // lines, dots and arrows are ASCII: they may be two columns wide
	ascii             // all is ASCII
)

func newTheme(colour bool, l letters) theme {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(termenv.ANSI)
	r.SetHasDarkBackground(true)
	ink := func(n string) lipgloss.Style {
		if !colour {
			return r.NewStyle()
		}
		return r.NewStyle().Foreground(lipgloss.Color(n))
	}
	t := theme{
		renderer: r,
		title:    r.NewStyle().Bold(true),
		faint:    r.NewStyle().Faint(true),
		key:      r.NewStyle().Bold(true),
		selected: r.NewStyle().Reverse(true),
		accent:   ink("6"),
		good:     ink("2"),
		bad:      ink("1").Bold(true),
		warn:     ink("3").Bold(true),
		unknown:  ink("5").Bold(true),
	}
	switch l {
	case plainLine:
		t.plain = strings.NewReplacer(lineLetters...)
	case ascii:
		t.plain = strings.NewReplacer(append(append([]string{}, glyphLetters...), lineLetters...)...)
	}
	return t
}

// lineLetters are what is two columns wide in some locales, and what stands for it
// there: always one column for one.
var lineLetters = []string{
	"─", "-", "│", "|", "┃", "|", "·", "-", "…", "~", "←", "<", "→", ">", "↑", "^", "↓", "v", "•", "*",
}

// glyphLetters are the other characters outside ASCII that the screen uses.
var glyphLetters = []string{
	"×", "x", "✓", "+", "✗", "x", "◌", ".", "▸", ">",
	"⠋", "|", "⠙", "/", "⠹", "-", "⠸", "\\", "⠼", "|", "⠴", "/", "⠦", "-", "⠧", "\\",
}

// spinner are the frames of what moves while something is under way.
var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"}

// glyph is the sign of a status, one column wide.
func glyph(s steps.Status) string {
	switch s {
	case steps.Pass:
		return "✓"
	case steps.Warn:
		return "!"
	case steps.Fail:
		return "✗"
	case steps.Unknown:
		return "?"
	case steps.Skip:
		return "-"
	}
	return "◌"
}

// ink is the style of a status.
func (t *theme) ink(s steps.Status) lipgloss.Style {
	switch s {
	case steps.Pass:
		return t.good
	case steps.Warn:
		return t.warn
	case steps.Fail:
		return t.bad
	case steps.Unknown:
		return t.unknown
	case steps.Skip:
		return t.faint
	}
	return t.accent
}

// verb is the sign and the style of what happens to a thing.
func (t *theme) verb(v steps.Verb) (string, lipgloss.Style) {
	switch v {
	case steps.Create:
		return "+", t.good
	case steps.Delete:
		return "-", t.bad
	case steps.Replace:
		return "!", t.warn
	case steps.Leave:
		return "·", t.faint
	}
	return "~", t.accent
}
