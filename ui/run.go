package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/term"
	"github.com/muesli/termenv"

	"carrick/ui/model"
)

// frames is the number of frames per second. The renderer's timer never stops. At the default of 60 frames, it would
// use 1 % of a core.
const frames = 30

// Run shows the wizard until the user leaves. It then prints a plain summary on the normal screen. After q it returns
// nil, and after ctrl+c ErrInterrupted. Without a terminal it returns ErrNoTerminal. If ctx ended the wizard, it
// returns the cause of ctx. It always restores the terminal.
func Run(ctx context.Context, o Options) error {
	if err := NeedTerminal(o.In, o.Out); err != nil {
		return err
	}
	w, h, err := term.GetSize(o.Out.(interface{ Fd() uintptr }).Fd())
	if err != nil {
		return fmt.Errorf("read the size of the terminal: %w", err)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	a := newApp(inner, o, os.Getenv)
	a.w, a.h = w, a.player.sized(w, h)
	a.dir, _ = os.Getwd() // used only to shorten paths
	p := tea.NewProgram(
		a, tea.WithInput(a.listen(o.In, os.Getenv)), tea.WithOutput(o.Out), tea.WithAltScreen(), tea.WithFPS(frames),
	)
	a.send = p.Send
	// tea.WithContext would kill the tea.Program without waiting for its terminal reader to stop.
	defer context.AfterFunc(ctx, p.Quit)()
	_, err = p.Run()
	cancel()
	defer a.closeSession()
	if err != nil {
		return endedBy(err)
	}
	if err := a.farewell(o.Out); err != nil {
		return err
	}
	if a.left == interrupted {
		return ErrInterrupted
	}
	return context.Cause(ctx)
}

func endedBy(err error) error {
	if errors.Is(err, tea.ErrInterrupted) {
		return ErrInterrupted
	}
	return fmt.Errorf("the screen failed: %w", err)
}

// NeedTerminal returns ErrNoTerminal if the wizard cannot be shown. It must be called before anything is prepared.
func NeedTerminal(in io.Reader, out io.Writer) error {
	for _, end := range []any{in, out} {
		f, ok := end.(interface{ Fd() uintptr })
		if !ok || !term.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
			return ErrNoTerminal
		}
	}
	return nil
}

func newApp(ctx context.Context, o Options, env environment) *app {
	lipgloss.SetColorProfile(termenv.Ascii) // widgets have no colors of their own
	a := &app{
		o: o, skin: o.skin(env), k: newKeys(), term: env.abilities(),
		ctx: ctx, editor: model.Editor(env), now: time.Now, send: func(tea.Msg) {},
	}
	a.t = newTheme(a.skin)
	a.page = a.firstPage()
	a.player = newPlayer(a, o.Walk)
	return a
}

func (a *app) closeSession() {
	if a.live != nil {
		a.live.Session.Close()
	}
}
