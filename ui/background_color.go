package ui

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"
)

// askGround is how a terminal is asked for its background (OSC 11), and
// groundReply how its answer begins.
const (
	askGround   = "\x1b]11;?\x07"
	groundReply = "\x1b]11;"
	// groundWithin is how long an answer is waited for: a later one is read, so
	// that it is not taken for keys, and changes nothing any more.
	groundWithin = 200 * time.Millisecond
	// longestReply is more than any answer has.
	longestReply = 64
)

// groundMsg is for the app: the terminal has said what its background is.
type groundMsg struct{ ground termenv.Color }

// terminalFile is what bubbletea takes for a terminal.
type terminalFile interface {
	io.ReadWriteCloser
	Fd() uintptr
	Name() string
}

// listener is the terminal's input without the answer to askGround, which is
// told instead.
type listener struct {
	terminalFile
	told func(answer string)
	held []byte // what may be the begin of the answer
	over bool   // it has come
}

// Read reads keys.
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

// keys is the input without the answer; what may be a part of it is held.
func (l *listener) keys(input []byte) []byte {
	from := bytes.Index(input, []byte(groundReply))
	if from < 0 {
		if len(input) > 1 { // a lone escape is a key
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

// hold keeps the last n bytes for the next time.
func (l *listener) hold(input *[]byte, n int) {
	at := len(*input) - n
	l.held = append([]byte{}, (*input)[at:]...)
	*input = (*input)[:at]
}

// partOf is how many of the last bytes may be the begin of an answer; of an
// escape alone nobody knows, and it is a key far more often.
func partOf(input []byte) int {
	for n := len(groundReply) - 1; n > 1; n-- {
		if bytes.HasSuffix(input, []byte(groundReply[:n])) {
			return n
		}
	}
	return 0
}

// groundOf reads an answer: rgb:1e1e/1e1e/1e1e, or #1e1e1e.
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

// listen makes the input one that hears what the terminal answers, and the app
// ask once the screen is up; where the theme was named, nobody asks.
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

// askGround asks the terminal for its background.
func (a *app) askGround() tea.Cmd {
	if !a.asks {
		return nil
	}
	a.asked = a.now()
	out := a.o.Out
	return func() tea.Msg {
		_, _ = io.WriteString(out, askGround) // one that can't be asked has not answered
		return nil
	}
}

// grounded takes the theme that fits the background, unless the user has
// looked at another one for long.
func (a *app) grounded(m groundMsg) {
	if a.now().Sub(a.asked) > groundWithin {
		return
	}
	a.skin.ground = m.ground
	a.t = newTheme(a.skin)
}
