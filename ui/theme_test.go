package ui

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// grounds maps themes to usual background colors of terminals, black or white first.
var grounds = map[string][]string{
	themeAuto:  {"#000000", "#ffffff"},
	themeDark:  {"#000000", "#1e1e1e", "#002b36", "#282a36", "#2e3440", "#300a24"},
	themeLight: {"#ffffff", "#fdf6e3", "#eee8d5", "#fafafa", "#eff1f5"},
}

// sixteen has the 16 colors of a PC's text mode, and of xterm.
var sixteen = [][16]string{
	{
		"#000000", "#aa0000", "#00aa00", "#aa5500", "#0000aa", "#aa00aa", "#00aaaa", "#aaaaaa", "#555555", "#ff5555",
		"#55ff55", "#ffff55", "#5555ff", "#ff55ff", "#55ffff", "#ffffff",
	},
	{
		"#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5", "#7f7f7f", "#ff0000",
		"#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff",
	},
}

func (p palette) all() map[string]lipgloss.CompleteColor {
	return map[string]lipgloss.CompleteColor{
		"good": p.good, "bad": p.bad, "warn": p.warn, "unknown": p.unknown, "todo": p.todo, "accent": p.accent,
		"faint": p.faint,
	}
}

func TestEveryColourCanBeRead(t *testing.T) {
	looked := 0
	reads := func(what string, ink termenv.Color, on string) {
		t.Helper()
		looked++
		if c := contrast(ink, termenv.RGBColor(on)); c < enough {
			t.Errorf("%s on %s: %.2f", what, on, c)
		}
	}
	for theme, on := range grounds {
		for name, c := range palettes[theme].all() {
			what := theme + " " + name
			for _, ground := range on {
				if c.TrueColor == "" {
					t.Errorf("%s has no colour", what)
				}
				reads(what, termenv.RGBColor(c.TrueColor), ground)
				if c.ANSI256 != "" {
					reads(what+" of 256", termenv.ANSI256.Color(c.ANSI256), ground)
				}
			}
			for i, terminal := range sixteen {
				if c.ANSI != "" { // these backgrounds are black and white
					reads(
						fmt.Sprintf("%s of 16 (%d)", what, i), termenv.RGBColor(terminal[termenv.ANSI.Color(c.ANSI).(termenv.ANSIColor)]),
						on[0],
					)
				}
			}
		}
	}
	if c := contrast(termenv.RGBColor(white.TrueColor), termenv.RGBColor(black.TrueColor)); c < 20.9 {
		t.Errorf("black and white: %.2f", c)
	}
	if looked < 100 {
		t.Errorf("only %d pairs were looked at", looked)
	}
}

// On a background for which no theme is made, unreadable colors are replaced by the terminal's own color.
func TestNoColourWhereItCannotBeRead(t *testing.T) {
	for _, ground := range []string{"#808080", "#5f5f5f", "#b0b0b0", "#7a0000"} {
		s := skin{colour: true, profile: termenv.TrueColor, ground: termenv.RGBColor(ground)}
		th := newTheme(s)
		for name, style := range map[string]lipgloss.Style{
			"good": th.good, "bad": th.bad, "warn": th.warn, "faint": th.faint, "accent": th.accent, "unknown": th.unknown,
		} {
			if c, ok := style.GetForeground().(lipgloss.CompleteColor); ok &&
				contrast(termenv.RGBColor(c.TrueColor), s.ground) < enough {
				t.Errorf("%s on %s: %v", name, ground, c)
			}
		}
	}
}

func TestThemeFitsTheTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		theme string
		env   map[string]string
		want  string
	}{
		"nothing is known":      {"", map[string]string{"TERM": "xterm"}, themeAuto},
		"black":                 {"", map[string]string{"COLORFGBG": "15;0"}, themeDark},
		"white":                 {"auto", map[string]string{"COLORFGBG": "0;15"}, themeLight},
		"rxvt's three":          {"auto", map[string]string{"COLORFGBG": "0;default;7"}, themeLight},
		"a grey":                {"auto", map[string]string{"COLORFGBG": "7;8"}, themeDark},
		"nonsense":              {"auto", map[string]string{"COLORFGBG": "7;default"}, themeAuto},
		"the console":           {"auto", map[string]string{"TERM": "linux"}, themeDark},
		"the flag is above all": {"light", map[string]string{"COLORFGBG": "15;0"}, themeLight},
		"high contrast":         {"high-contrast", nil, themeContrast},
	} {
		o := Options{Theme: c.theme}
		s := o.skin(func(n string) string { return c.env[n] })
		if got := s.palette(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;:]*)m")

// On every screen all colors are in the theme, and no text is faint.
func TestEveryColourIsOfTheTheme(t *testing.T) {
	lipgloss.SetColorProfile(termenv.TrueColor) // so that a style that is not of the theme would show
	defer lipgloss.SetColorProfile(termenv.Ascii)
	found := map[string]bool{}
	for _, theme := range Themes {
		for _, scene := range scenes {
			scene.play(t, theme, func(p *play) {
				for _, profile := range []termenv.Profile{termenv.TrueColor, termenv.ANSI256, termenv.ANSI} {
					if p.a.run != nil && profile != termenv.TrueColor {
						break // what was done is noted with its colours
					}
					may := allowed(theme, profile)
					p.a.skin.profile = profile
					p.a.t = newTheme(p.a.skin)
					for _, w := range []int{60, 80, 120} {
						p.size(w, 30)
						for _, code := range codes(p.a.View()) {
							found[code] = true
							if !may[code] {
								p.t.Fatalf("%s, %s: %q\n%q", scene.name, theme, code, p.a.View())
							}
						}
					}
				}
			})
		}
	}
	if len(found) < 40 {
		t.Errorf("there was only %v", slices.Sorted(maps.Keys(found)))
	}
}

// codes returns the distinct styles in a frame.
func codes(frame string) []string {
	var out []string
	for _, m := range sgr.FindAllStringSubmatch(frame, -1) {
		parts := strings.Split(m[1], ";")
		for len(parts) > 0 {
			n := 1
			if parts[0] == "38" || parts[0] == "48" {
				n = map[string]int{"2": 5, "5": 3}[parts[1]]
			}
			out = append(out, strings.Join(parts[:n], ";"))
			parts = parts[n:]
		}
	}
	return out
}

// allowed returns the styles of a theme: reset, bold, underline, reverse and its colors.
func allowed(theme string, profile termenv.Profile) map[string]bool {
	may := map[string]bool{"": true, "0": true, "1": true, "7": true}
	list := slices.Collect(maps.Values(palettes[theme].all()))
	if theme == themeContrast {
		may["4"] = true
		list = []lipgloss.CompleteColor{white}
	}
	for _, c := range list {
		text := map[termenv.Profile]string{
			termenv.TrueColor: c.TrueColor, termenv.ANSI256: c.ANSI256, termenv.ANSI: c.ANSI,
		}[profile]
		if text != "" {
			may[profile.Color(text).Sequence(false)] = true
		}
	}
	if theme == themeContrast {
		text := map[termenv.Profile]string{
			termenv.TrueColor: black.TrueColor, termenv.ANSI256: black.ANSI256, termenv.ANSI: black.ANSI,
		}[profile]
		may[profile.Color(text).Sequence(true)] = true
	}
	return may
}

// High contrast looks the same in every terminal, whatever the terminal's colors are.
func TestHighContrastCoversTheScreen(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.Theme = themeContrast
	onStage(t, o, 80, 24, func(p *play) {
		for _, ground := range []string{"", "#ffffff"} {
			want := []string{"38;2;255;255;255", "48;2;0;0;0"}
			if ground != "" {
				p.a.asked = p.a.now()
				p.deliver(groundMsg{termenv.RGBColor(ground)})
				want = []string{"38;2;0;0;0", "48;2;255;255;255"}
			}
			lines := strings.Split(p.a.View(), "\n")
			for i, l := range lines {
				if width(l) != 80 || !strings.HasPrefix(l, "\x1b["+strings.Join(want, ";")+"m") {
					p.t.Fatalf("line %d is %d wide and begins %.40q", i, width(l), l)
				}
				for _, after := range strings.Split(l, reset)[1:] {
					if after != "" && !strings.HasPrefix(after, p.a.t.base) {
						p.t.Fatalf("line %d has the terminal's own colours: %q", i, l)
					}
				}
			}
		}
	})
}
