package commands

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"carrick/cmd/carrick/exit"
	"carrick/ui"
	"carrick/ui/lines"
)

// walk runs the wizard on the screen, or in lines if that was requested or there is no screen.
func (a *app) walk(ctx context.Context, o ui.Options) error {
	if !a.inLines() {
		return ui.Run(ctx, o)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Without a terminal, the user may read along only if lines were requested.
	a.attended = a.spokenTo() || isTerminalStream(a.in) || isTerminalStream(a.tty)
	outliveReaders()
	interrupts := make(chan os.Signal, 8)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	// Ctrl+c cancels the current operation, and not the whole program immediately.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := lines.Run(ctx, lines.Options{Options: o.Options, Interrupts: interrupts})
	switch noInput := (*lines.NoInputError)(nil); {
	case errors.Is(err, lines.ErrInterrupted):
		return ui.ErrInterrupted
	case errors.As(err, &noInput):
		return exit.AsUsage(err)
	}
	return err
}

// inLines reports whether the wizard runs in lines.
func (a *app) inLines() bool { return a.spokenTo() || ui.NeedTerminal(a.in, a.tty) != nil }

// spokenTo reports whether lines were requested.
func (a *app) spokenTo() bool { return a.accessible || os.Getenv("ACCESSIBLE") != "" }

// needSomebody returns an error if no answer can ever arrive, because the input is closed or empty from the start.
func (a *app) needSomebody(path string) error {
	f, ok := a.in.(*os.File)
	if !ok || isTerminal(f) {
		return nil
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice == 0 && (!info.Mode().IsRegular() || info.Size() > 0) {
		return nil
	}
	return exit.Usagef(
		"the wizard requires a terminal, or answers on standard input. Without questions: %[1]s check %[2]s checks, %[1]s "+
			"apply %[2]s --yes applies",
		a.name, path,
	)
}
