package ui

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"
)

// askGround queries a terminal's background color (OSC 11). The terminal's reply begins with groundReply.
const (
	askGround   = "\x1b]11;?\x07"
	groundReply = "\x1b]11;"
	// groundWithin is the timeout for the reply. A later reply has no effect, but it is still removed from the input, so
	// that it is not read as keys.
	groundWithin = 200 * time.Millisecond
	// longestReply is an upper limit for the length of a reply in bytes.
	longestReply = 64
)

// groundMsg reports the terminal's background color to the app.
type groundMsg struct{ ground termenv.Color }

// terminalFile is the interface that bubbletea requires of a terminal.
type terminalFile interface {
	io.ReadWriteCloser
	Fd() uintptr
	Name() string
}

// listener removes the reply to askGround from the terminal's input and passes it to told.
type listener struct {
	terminalFile
	told func(answer string)
	held []byte // possible start of the reply
	over bool   // the reply has been received
}

// Read returns the input without the reply.
func (l *listener) Read(p []byte) (int, error) {
	if l.over || len(p) < 2*longestReply {
		return l.terminalFile.Read(p)
	}
	n := copy(p, l.held)
	m, err := l.terminalFile.Read(p[n:])
	l.held = nil
	rest := l.keys(p[:n+m])
	return copy(p, rest), err
}

// keys returns the input without the reply. It holds back bytes at the end that might belong to the reply.
func (l *listener) keys(input []byte) []byte {
	from := bytes.Index(input, []byte(groundReply))
	if from < 0 {
		if len(input) > 1 { // a single escape is a key
			l.hold(&input, partOf(input))
		}
		return input
	}
	body := input[from+len(groundReply):]
	for _, end := range []string{"\x07", "\x1b\\"} {
		if to := bytes.Index(body, []byte(end)); to >= 0 {
			l.over = true
			l.told(string(body[:to]))
			return append(input[:from:from], body[to+len(end):]...)
		}
	}
	if len(body) < longestReply {
		l.hold(&input, len(input)-from)
	}
	return input
}

// hold removes the last n bytes from the input and keeps them for the next Read.
func (l *listener) hold(input *[]byte, n int) {
	at := len(*input) - n
	l.held = append([]byte{}, (*input)[at:]...)
	*input = (*input)[:at]
}

// partOf returns the number of bytes at the end of the input that might be the start of a reply. A single escape counts
// as a key, because that is far more likely.
func partOf(input []byte) int {
	for n := len(groundReply) - 1; n > 1; n-- {
		if bytes.HasSuffix(input, []byte(groundReply[:n])) {
			return n
		}
	}
	return 0
}

// groundOf parses a reply, which is rgb:1e1e/1e1e/1e1e or #1e1e1e.
func groundOf(answer string) (termenv.Color, bool) {
	var r, g, b uint
	if n, _ := fmt.Sscanf(answer, "#%02x%02x%02x", &r, &g, &b); n == 3 {
		return termenv.RGBColor(answer[:7]), true
	}
	_, values, ok := strings.Cut(answer, ":")
	parts := strings.Split(values, "/")
	if !ok || len(parts) < 3 || !strings.HasPrefix(answer, "rgb") {
		return nil, false
	}
	out := "#"
	for _, p := range parts[:3] {
		var v uint
		if n, _ := fmt.Sscanf(p, "%x", &v); n != 1 || len(p) > 4 {
			return nil, false
		}
		most := uint(1)<<(4*len(p)) - 1
		out += fmt.Sprintf("%02x", v*255/most)
	}
	return termenv.RGBColor(out), true
}

// listen returns the input without the terminal's reply. It makes the app send the query once the screen is active. If
// the reply would be useless, for example because the user chose a theme, listen returns the input unchanged.
func (a *app) listen(in io.Reader, env environment) io.Reader {
	file, ok := in.(terminalFile)
	if !ok || !a.skin.colour || !env.askable() || (a.skin.theme != "" && a.skin.theme != themeAuto &&
		a.skin.theme != themeContrast) {
		return in
	}
	a.asks = true
	return &listener{terminalFile: file, told: func(answer string) {
		if ground, ok := groundOf(answer); ok {
			a.send(groundMsg{ground})
		}
	}}
}

func (a *app) askGround() tea.Cmd {
	if !a.asks {
		return nil
	}
	a.asked = a.now()
	out := a.o.Out
	return func() tea.Msg {
		_, _ = io.WriteString(out, askGround) // without a reply the theme remains unchanged
		return nil
	}
}

// grounded selects the theme for the background color, unless the reply came too late.
func (a *app) grounded(m groundMsg) {
	if a.now().Sub(a.asked) > cmp.Or(a.o.replyWithin, groundWithin) {
		return
	}
	a.skin.ground = m.ground
	a.t = newTheme(a.skin)
}
