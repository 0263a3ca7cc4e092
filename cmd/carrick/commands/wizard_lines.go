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

// walk runs the wizard full-screen if possible, and otherwise in line mode.
func (a *app) walk(ctx context.Context, o ui.Options) error {
	if !a.inLines() {
		return ui.Run(ctx, o)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Without a terminal, a user reads the output only if line mode was requested explicitly.
	a.attended = a.spokenTo() || isTerminalStream(a.in) || isTerminalStream(a.tty)
	outliveReaders()
	interrupts := make(chan os.Signal, 8)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	// Ctrl+c cancels only the current operation.
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

func (a *app) inLines() bool { return a.spokenTo() || ui.NeedTerminal(a.in, a.tty) != nil }

// spokenTo reports whether line mode was requested explicitly.
func (a *app) spokenTo() bool { return a.accessible || os.Getenv("ACCESSIBLE") != "" }

// needInput returns an error if standard input is closed or empty, because the wizard could never read an answer.
func (a *app) needInput(path string) error {
	f, ok := a.in.(*os.File)
	if !ok || isTerminal(f) {
		return nil
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice == 0 && (!info.Mode().IsRegular() || info.Size() > 0) {
		return nil
	}
	return exit.Usagef(
		"the wizard requires a terminal, or answers on standard input. To run without questions, use %[1]s check %[2]s or "+
			"%[1]s apply %[2]s --yes",
		a.name, path,
	)
}
