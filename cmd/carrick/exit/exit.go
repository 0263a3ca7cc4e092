// Package exit defines carrick's exit codes and error messages.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

// Exit codes in order of precedence.
const (
	Interrupted = 130 // by ctrl+c or another signal
	Deadline    = 124 // the timeout in --wait expired
	Usage       = 2   // also for a missing answer without a terminal
	PartWay     = 6   // stopped after some changes, or an undo kept files that the link wrote
	Failed      = 3   // a check failed, or diff found changes
	Unknown     = 5   // a verdict is unknown or pending, or diff could not determine all changes
	Warnings    = 4   // warnings that --fail-on selects
	Other       = 1
)

// Verdict is the exit code of a command that succeeded technically. It is an error type, but there is no message.
type Verdict int

func (v Verdict) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

// usageError is an error in the command line or in an input file.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// AsUsage returns err as a usage error.
func AsUsage(err error) error { return usageError{err} }

// Usagef formats a usage error.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Code returns the exit code for err.
func Code(ctx context.Context, err error) int {
	var (
		v       Verdict
		u       usageError
		file    *linkfile.FileError
		missing *steps.MissingError
		part    *engine.StoppedError
		awaits  *engine.AwaitsError
	)
	switch {
	case errors.Is(err, ui.ErrInterrupted), ctx.Err() != nil && err != nil:
		return Interrupted
	case err == nil:
		return 0
	case errors.Is(err, ErrDeadline):
		return Deadline
	case errors.As(err, &v):
		return int(v)
	case errors.As(err, &u), errors.As(err, &file), errors.As(err, &missing), errors.Is(err, ui.ErrNoTerminal):
		return Usage
	case errors.As(err, &part):
		return PartWay
	case errors.As(err, &unanswered{}), errors.As(err, &awaits):
		return Unknown
	}
	return Other
}

// Message returns the line for standard error. It returns "" if the command has already printed everything.
func Message(name string, err error) string {
	var v Verdict
	switch {
	case err == nil, errors.As(err, &v):
		return ""
	case errors.Is(err, ui.ErrInterrupted), errors.Is(err, context.Canceled):
		return name + ": interrupted; nothing is lost. Run the same command again to continue"
	}
	text := name + ": " + clean.Text(err.Error())
	var part *engine.StoppedError
	if errors.As(err, &part) {
		text += "\ncompleted changes are kept; run the same command again to continue, or " + name + " undo to revert them"
	}
	return text
}

// ErrDeadline is the cancellation cause when --wait times out.
var ErrDeadline = errors.New("not green in time")

type unanswered struct{ error }

func (e unanswered) Unwrap() error { return e.error }

// FileError removes the path from a file error, because the caller prints the path.
func FileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("permission denied")
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Unanswered wraps err so that the exit code is Unknown.
func Unanswered(err error) error { return unanswered{err} }
