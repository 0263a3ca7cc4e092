package ui

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"carrick/steps"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// play runs the wizard without a terminal. Its commands run in a synctest bubble, so that a test knows when the wizard
// is idle.
type play struct {
	t    *testing.T
	a    *app
	out  bytes.Buffer
	msgs chan tea.Msg
	quit bool
}

// onStage runs a scene on the wizard with those options and that size.
func onStage(t *testing.T, o Options, w, h int, scene func(*play)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			time.Sleep(2 * time.Minute) // beats end by themselves; the clock is the bubble's
		}()
		p := &play{t: t, msgs: make(chan tea.Msg, 10_000)}
		o.Out = &p.out
		p.a = newApp(ctx, o, func(name string) string {
			return map[string]string{"LANG": "en_US.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor"}[name]
		})
		p.a.w, p.a.h = w, h
		p.a.send = func(m tea.Msg) { p.msgs <- m }
		p.do(p.a.Init())
		p.settle()
		scene(p)
	})
}

// do runs a command as bubbletea does.
func (p *play) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		if m := cmd(); m != nil {
			p.msgs <- m
		}
	}()
}

// settle delivers messages until no more arrive without time passing.
func (p *play) settle() {
	for {
		synctest.Wait()
		select {
		case m := <-p.msgs:
			p.deliver(m)
		default:
			return
		}
	}
}

func (p *play) deliver(m tea.Msg) {
	switch m := m.(type) {
	case tea.BatchMsg:
		for _, cmd := range m {
			p.do(cmd)
		}
	case tea.QuitMsg:
		p.quit = true
	default:
		_, cmd := p.a.Update(m)
		p.do(cmd)
	}
}

// after advances the time.
func (p *play) after(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); p.settle() {
		time.Sleep(min(100*time.Millisecond, time.Until(end)))
	}
}

// press presses keys, one after the other.
func (p *play) press(keys ...string) {
	for _, k := range keys {
		p.deliver(keyOf(k))
		p.settle()
	}
}

var named = map[string]tea.KeyType{
	"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
	"right": tea.KeyRight, "ctrl+c": tea.KeyCtrlC, "ctrl+s": tea.KeyCtrlS, "ctrl+e": tea.KeyCtrlE, "ctrl+u": tea.KeyCtrlU,
	"pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace, "ctrl+end": tea.KeyCtrlEnd,
}

func keyOf(k string) tea.KeyMsg {
	if t, ok := named[k]; ok {
		return tea.KeyMsg{Type: t}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
}

// resize changes the size of the terminal.
func (p *play) resize(w, h int) {
	p.deliver(tea.WindowSizeMsg{Width: w, Height: h})
	p.settle()
}

// screen returns the frame without styles.
func (p *play) screen() string {
	lines := strings.Split(ansi.Strip(p.a.View()), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// shows fails the test if one of the texts is not in the frame.
func (p *play) shows(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.screen(), text) {
			p.t.Fatalf("the screen lacks %q:\n%s", text, p.screen())
		}
	}
}

// hides fails the test if one of the texts is in the frame.
func (p *play) hides(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if strings.Contains(p.screen(), text) {
			p.t.Fatalf("the screen has %q:\n%s", text, p.screen())
		}
	}
}

// golden compares the frame with testdata/<name>.txt.
func (p *play) golden(name string) {
	p.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got := p.screen()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		p.t.Errorf("%s (-want +got; go test ./ui -update rewrites it):\n%s", path, diff)
	}
}

// verdict returns the status of a check on a side.
func (p *play) verdict(check string, side steps.Side) steps.Status {
	for _, c := range p.a.live.Guide().Cells() {
		if c.Check == check && c.Side == side {
			return p.a.live.Board.Verdict(c).Status
		}
	}
	p.t.Fatalf("no check %s", check)
	return steps.Unknown
}
