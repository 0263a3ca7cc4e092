package ui

import (
	"strings"
	"testing"
)

func TestColours(t *testing.T) {
	for name, c := range map[string]struct {
		flag string
		env  map[string]string
		want bool
	}{
		"a terminal":              {"", nil, true},
		"the flag is above all":   {"always", map[string]string{"NO_COLOR": "1"}, true},
		"never":                   {"never", map[string]string{"CLICOLOR_FORCE": "1"}, false},
		"NO_COLOR over FORCE":     {"auto", map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false},
		"FORCE over CLICOLOR=0":   {"", map[string]string{"CLICOLOR_FORCE": "1", "CLICOLOR": "0"}, true},
		"CLICOLOR=0":              {"", map[string]string{"CLICOLOR": "0"}, false},
		"FORCE=0 forces nothing":  {"", map[string]string{"CLICOLOR_FORCE": "0", "CLICOLOR": "0"}, false},
		"an empty NO_COLOR is no": {"", map[string]string{"NO_COLOR": ""}, true},
		"a terminal without":      {"", map[string]string{"TERM": "vt100"}, false},
		"one that is forced":      {"", map[string]string{"TERM": "vt100", "CLICOLOR_FORCE": "1"}, true},
	} {
		env := func(n string) string {
			if n == "TERM" && c.env[n] == "" {
				return "xterm"
			}
			return c.env[n]
		}
		if got := colours(c.flag, env); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNoColourKeepsTheSelection(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.Color = "never"
	onStage(t, o, 80, 24, func(p *play) {
		v := p.a.View()
		for _, colour := range []string{"[3", ";3", "[9", ";9", "[4", ";4"} {
			if strings.Contains(v, colour) {
				t.Fatalf("there is colour %q", colour)
			}
		}
		if !strings.Contains(v, ";7m") && !strings.Contains(v, "[7m") {
			t.Fatal("nothing shows the selected cell")
		}
	})
}
