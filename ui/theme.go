package ui

import (
	"io"
	"strings"

	"github.com/charmbracelet/bubbles/textinput"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"carrick/steps"
	"carrick/steps/engine"
)

// theme contains all styles of the screen. Text has the terminal's own color. Glyphs and short words have a color of
// the palette, but color is never the only difference between two statuses.
type theme struct {
	renderer *lipgloss.Renderer

	title    lipgloss.Style // headings
	faint    lipgloss.Style // secondary text
	key      lipgloss.Style // a key in the footer
	selected lipgloss.Style // the current selection
	accent   lipgloss.Style // choices and animations
	good     lipgloss.Style
	bad      lipgloss.Style
	warn     lipgloss.Style
	unknown  lipgloss.Style
	todo     lipgloss.Style

	base  string   // escape sequence that sets the colors of the whole screen; "" keeps the terminal's own colors
	plain replacer // applied last to the whole frame, unless it is nil
}

// skin describes the terminal's abilities and the user's preferences for colors and characters.
type skin struct {
	colour  bool
	profile termenv.Profile // number of colors
	theme   string          // one of Themes
	ground  termenv.Color   // the terminal's background; nil if unknown
	letters letters
}

func (s skin) palette() string {
	switch {
	case s.theme == themeDark, s.theme == themeLight, s.theme == themeContrast:
		return s.theme
	case s.ground == nil:
		return themeAuto
	case dark(s.ground):
		return themeDark
	}
	return themeLight
}

func newTheme(s skin) theme {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(min(s.profile, termenv.ANSI)) // the Ascii profile would drop bold, too
	r.SetHasDarkBackground(true)
	name := s.palette()
	p := palettes[name]
	ink := func(c lipgloss.CompleteColor) lipgloss.Style {
		if !s.colour || !s.reads(r, c) {
			return r.NewStyle()
		}
		return r.NewStyle().Foreground(c)
	}
	t := theme{
		renderer: r,
		title:    r.NewStyle().Bold(true),
		faint:    ink(p.faint),
		key:      r.NewStyle().Bold(true),
		selected: r.NewStyle().Reverse(true),
		accent:   ink(p.accent),
		good:     ink(p.good),
		bad:      ink(p.bad).Bold(true),
		warn:     ink(p.warn).Bold(true),
		unknown:  ink(p.unknown).Bold(true),
		todo:     ink(p.todo).Bold(true),
		plain:    s.letters.plain(),
	}
	if name == themeContrast {
		t.accent, t.key = t.title, t.title.Underline(true)
		t.bad = t.bad.Underline(true)
		t.base = s.base(r)
	}
	return t
}

// reads reports whether a color is readable on the background, as far as the background is known.
func (s skin) reads(r *lipgloss.Renderer, c lipgloss.CompleteColor) bool {
	text := c.ANSI
	switch r.ColorProfile() {
	case termenv.TrueColor:
		text = c.TrueColor
	case termenv.ANSI256:
		text = c.ANSI256
	}
	if text == "" {
		return false
	}
	return s.ground == nil || s.theme != "" && s.theme != themeAuto ||
		contrast(r.ColorProfile().Color(text), s.ground) >= enough
}

// base returns the escape sequence for white on black. If the terminal has a light background, the sequence is for
// black on white. Without colors it returns "".
func (s skin) base(r *lipgloss.Renderer) string {
	if !s.colour {
		return ""
	}
	style := r.NewStyle().Foreground(white).Background(black)
	if s.ground != nil && !dark(s.ground) {
		style = r.NewStyle().Foreground(black).Background(white)
	}
	sequence, _, _ := strings.Cut(style.Render("x"), "x")
	return sequence
}

// laid applies the colors of the whole screen to a frame with a width of w columns.
func (t *theme) laid(frame []string, w int) []string {
	if t.base == "" {
		return frame
	}
	for i, l := range frame {
		frame[i] = t.base + strings.ReplaceAll(pad(l, w), reset, reset+t.base) + reset
	}
	return frame
}

const reset = "\x1b[0m"

func (t *theme) dress(in *textinput.Model) {
	plain := t.renderer.NewStyle()
	in.PromptStyle, in.TextStyle, in.PlaceholderStyle, in.CompletionStyle = plain, plain, t.faint, t.faint
	in.Cursor.Style, in.Cursor.TextStyle = t.selected, plain
}

// sign returns the symbol of a state in its color. It is one column wide.
func (t *theme) sign(s engine.State) string { return t.ink(s).Render(s.Glyph()) }

func (t *theme) ink(s engine.State) lipgloss.Style {
	switch s {
	case engine.OK:
		return t.good
	case engine.Warning:
		return t.warn
	case engine.Failed:
		return t.bad
	case engine.Unknown:
		return t.unknown
	case engine.ToDo:
		return t.todo
	case engine.Later, engine.Off, engine.Skipped:
		return t.faint
	}
	return t.accent
}

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
