package main

import (
	"context"
	"errors"
	"fmt"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

// The exit codes. Where several hold, the first of this list counts.
const (
	exitInterrupted = 130 // ctrl+c, or a signal
	exitDeadline    = 124 // --wait ran out
	exitUsage       = 2   // usage, or an answer is missing and nobody is there to ask
	exitPartWay     = 6   // stopped part-way: some things were changed; or an undo did, and left files that the link wrote
	exitFailed      = 3   // a check failed; for diff: there are changes
	exitUnknown     = 5   // something is unknown or still waiting; for diff: nothing changes, of what is known
	exitWarnings    = 4   // warnings that --fail-on names
	exitOther       = 1
)

// verdict is an outcome that is no error: what was asked for was done, and the
// exit code says what was found.
type verdict int

func (v verdict) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

// usageError is a fault in how carrick was called, or in what it was given.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func exitCode(ctx context.Context, err error) int {
	var (
		v       verdict
		u       usageError
		file    *linkfile.FileError
		missing *steps.MissingError
		part    *engine.StoppedError
		awaits  *engine.AwaitsError
	)
	switch {
	case errors.Is(err, ui.ErrInterrupted), ctx.Err() != nil && err != nil:
		return exitInterrupted
	case err == nil:
		return 0
	case errors.Is(err, errDeadline):
		return exitDeadline
	case errors.As(err, &v):
		return int(v)
	case errors.As(err, &u), errors.As(err, &file), errors.As(err, &missing), errors.Is(err, ui.ErrNoTerminal):
		return exitUsage
	case errors.As(err, &part):
		return exitPartWay
	case errors.As(err, &unanswered{}), errors.As(err, &awaits):
		return exitUnknown
	}
	return exitOther
}

// message is what is said of an error on standard error; "" where all was said.
func (a *app) message(err error) string {
	var v verdict
	switch {
	case err == nil, errors.As(err, &v):
		return ""
	case errors.Is(err, ui.ErrInterrupted), errors.Is(err, context.Canceled):
		return a.name + ": interrupted; nothing is lost: the clusters are the state, so the same command goes on from here"
	}
	text := a.name + ": " + cluster.Clean(err.Error())
	var part *engine.StoppedError
	if errors.As(err, &part) {
		text += "\nwhat was done stays; the same command goes on from here, and " + a.name + " undo takes it back"
	}
	return text
}

// leftFiles is the verdict on an undo that changed something and leaves files that the link wrote: the plan and the run
// have listed them.
func leftFiles(p *engine.Plan) error {
	if p.Changes() && len(p.Left()) > 0 {
		return verdict(exitPartWay)
	}
	return nil
}

// boardCode is the exit code that a board asks for.
func boardCode(n engine.Counts, warned bool) int {
	switch {
	case n.Of(steps.Fail) > 0:
		return exitFailed
	case n.Of(steps.Unknown)+n.Of(steps.Waiting)+n.Of(steps.Pending) > 0:
		return exitUnknown
	case warned:
		return exitWarnings
	}
	return 0
}
