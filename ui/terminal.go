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

// abilities are the features of the terminal. The zero value supports neither links nor a clipboard.
type abilities struct {
	links bool // OSC 8
	clip  clipboard
	mux   func(stdin string, args ...string) (string, error) // runs tmux; nil outside of tmux
}

// clipboard is the way to reach the clipboard of the user's terminal.
type clipboard int

const (
	noClipboard clipboard = iota // show the text for manual selection
	direct                       // OSC 52 (works through ssh)
	inScreen                     // OSC 52, wrapped for GNU screen
	inTmux                       // as tmux reports
)

// linkFamilies are prefixes of TERM for terminals that support links or silently ignore them. Others, such as the Linux
// console, a VT220, screen or a shell in Emacs, might show garbage.
var linkFamilies = []string{
	"xterm", "tmux", "alacritty", "foot", "kitty", "wezterm", "ghostty", "contour", "konsole", "iterm", "vte", "gnome",
}

// abilities derives the features of the terminal from the environment. Unknown features are off.
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

const muxWithin = 2 * time.Second

// runTmux runs a command in the tmux server that carrick runs in.
func runTmux(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), muxWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// sequence returns the escape sequence that copies text to the clipboard, and the notice for the user. If tmux has
// already copied the text, or if the terminal has no clipboard, the sequence is empty.
func (t abilities) sequence(text string) (seq, said string) {
	switch t.clip {
	case direct:
		return osc52.New(text).String(), "copied"
	case inScreen:
		return osc52.New(text).Screen().String(), "copied"
	case inTmux:
		return t.throughTmux(text)
	}
	return "", "not copied: this terminal has no clipboard; select the text with the mouse"
}

// throughTmux copies text through tmux. Depending on the tmux options, the returned sequence sets the clipboard
// directly or by passthrough. If the options allow neither, throughTmux runs the tmux command load-buffer.
func (t abilities) throughTmux(text string) (seq, said string) {
	set, _ := t.mux("", "display-message", "-p", "#{set-clipboard}/#{allow-passthrough}")
	reach, pass, _ := strings.Cut(set, "/")
	switch {
	case reach == "on":
		return osc52.New(text).String(), "copied"
	case pass == "on" || pass == "all":
		return osc52.New(text).Tmux().String(), "copied"
	}
	if _, err := t.mux(text, "load-buffer", "-w", "-"); err == nil { // -w also sets the terminal's clipboard
		return "", "copied, also into tmux: prefix ] pastes the text"
	}
	if _, err := t.mux(text, "load-buffer", "-"); err == nil { // before tmux 3.2
		return "", "copied into tmux only: prefix ] pastes the text"
	}
	return "", fmt.Sprintf(
		"not copied: tmux does not allow it (set-clipboard is %q); select the text with the mouse", reach,
	)
}

// link returns shown as a hyperlink to url if the terminal supports links, and otherwise unchanged.
func (t abilities) link(url, shown string, params ...string) string {
	if !t.links {
		return shown
	}
	return ansi.SetHyperlink(url, params...) + shown + ansi.ResetHyperlink()
}

// linked turns the addresses in a line into links. If more is true, it skips an address at the end of the line, because
// the address might continue on the next line.
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
