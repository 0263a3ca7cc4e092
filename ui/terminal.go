package ui

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/aymanbagabas/go-osc52/v2"
	"github.com/charmbracelet/x/ansi"

	"carrick/ui/model"
)

// abilities are what is known of the terminal beyond its size. The zero value
// knows neither links nor a clipboard.
type abilities struct {
	links bool // OSC 8
	clip  clipboard
	mux   func(stdin string, args ...string) (string, error) // runs tmux; nil: it is not there
}

// clipboard is the way to the clipboard of the user's own terminal.
type clipboard int

const (
	noClipboard clipboard = iota // the text is shown, to be marked by hand
	direct                       // OSC 52 (works through ssh)
	inScreen                     // the same, in the wrapping of GNU screen
	inTmux                       // as tmux says
)

// linkFamilies are how TERM begins where links are known, or where what is not
// known is dropped without a trace. Elsewhere (the console of Linux, a VT220,
// screen, a shell in Emacs) rubbish might stand on the screen.
var linkFamilies = []string{
	"xterm", "tmux", "alacritty", "foot", "kitty", "wezterm", "ghostty", "contour", "konsole", "iterm", "vte", "gnome",
}

// abilities are what the environment tells of the terminal. What it does not tell
// is not there.
func (env environment) abilities() abilities {
	name := env("TERM")
	family := false
	for _, f := range linkFamilies {
		family = family || strings.HasPrefix(name, f)
	}
	screen := env("STY") != "" || (strings.HasPrefix(name, "screen") && env("TMUX") == "")
	t := abilities{links: (family || env("TMUX") != "") && !screen}
	switch {
	case env("TMUX") != "":
		t.clip, t.mux = inTmux, runTmux
	case screen:
		t.clip = inScreen
	case family || strings.HasPrefix(name, "rxvt") || strings.HasPrefix(name, "st"):
		t.clip = direct
	}
	return t
}

// muxWithin is how long tmux may take to answer.
const muxWithin = 2 * time.Second

// runTmux asks the tmux in which carrick runs.
func runTmux(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), muxWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// sequence is what to write to the terminal to have a text on its clipboard, and
// what to say then. Nothing to write: tmux has it already, or there is no way.
func (t abilities) sequence(text string) (seq, said string) {
	switch t.clip {
	case direct:
		return osc52.New(text).String(), "copied"
	case inScreen:
		return osc52.New(text).Screen().String(), "copied"
	case inTmux:
		return t.throughTmux(text)
	}
	return "", "not copied, as this terminal has no clipboard; mark it by hand"
}

// throughTmux asks tmux how programs reach the clipboard here: by themselves,
// past it, or not at all; then tmux's own command does it.
func (t abilities) throughTmux(text string) (seq, said string) {
	set, _ := t.mux("", "display-message", "-p", "#{set-clipboard}/#{allow-passthrough}")
	reach, pass, _ := strings.Cut(set, "/")
	switch {
	case reach == "on":
		return osc52.New(text).String(), "copied"
	case pass == "on" || pass == "all":
		return osc52.New(text).Tmux().String(), "copied"
	}
	if _, err := t.mux(text, "load-buffer", "-w", "-"); err == nil { // -w: the terminal's clipboard, too
		return "", "copied, also for tmux's own prefix ]"
	}
	if _, err := t.mux(text, "load-buffer", "-"); err == nil { // before tmux 3.2
		return "", "copied into tmux alone: prefix ] pastes it"
	}
	return "", fmt.Sprintf("not copied: tmux takes nothing from programs (set-clipboard is %q); mark it by hand", reach)
}

// link is a text that leads to an address, where the terminal knows links.
func (t abilities) link(url, shown string, params ...string) string {
	if !t.links {
		return shown
	}
	return ansi.SetHyperlink(url, params...) + shown + ansi.ResetHyperlink()
}

// linked makes links of the addresses in a line. One that may go on in the next
// line is left alone: half an address leads elsewhere.
func (t abilities) linked(line string, more bool) string {
	plain := ansi.Strip(line)
	if !t.links || !strings.Contains(plain, "://") || strings.Contains(line, "\x1b]8;") {
		return line
	}
	out, done := "", 0
	for _, span := range model.Address.FindAllStringIndex(plain, -1) {
		url := plain[span[0]:span[1]]
		if more && strings.TrimSpace(plain[span[1]:]) == "" {
			continue
		}
		start, end := width(plain[:span[0]]), width(plain[:span[1]])
		out += ansi.Cut(line, done, start) + t.link(url, ansi.Cut(line, start, end))
		done = end
	}
	if done == 0 {
		return line
	}
	return out + ansi.Cut(line, done, width(line))
}
