// Package exit defines the exit codes of carrick, and the errors and messages that lead to them.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"carrick/cluster/clean"
	"carrick/cluster/nearest"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

// The exit codes. If several apply, the first in this list is used.
const (
	Interrupted = 130 // ctrl+c, or a signal
	Deadline    = 124 // the timeout of --wait expired
	Usage       = 2   // usage error, or a missing answer without a terminal to ask on
	PartWay     = 6   // stopped after some changes; or an undo changed something and kept files that the link wrote
	Failed      = 3   // a check failed; for diff: there are changes
	Unknown     = 5   // something is unknown or still waiting; for diff: no changes, as far as known
	Warnings    = 4   // warnings that --fail-on names
	Other       = 1
)

// Verdict is the result of a command that did its work: an exit code, not an error.
type Verdict int

func (v Verdict) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

// usageError is an error in the command line, or in the input of the command.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// AsUsage returns err as a usage error.
func AsUsage(err error) error { return usageError{err} }

// Usagef returns a usage error.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Code returns the exit code of a command that ended with err.
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

// Message returns the message that standard error gets for an error, after the name of the program. It returns "" if
// everything has been printed.
func Message(name string, err error) string {
	var v Verdict
	switch {
	case err == nil, errors.As(err, &v):
		return ""
	case errors.Is(err, ui.ErrInterrupted), errors.Is(err, context.Canceled):
		return name + ": interrupted; nothing is lost: run the same command again to continue"
	}
	text := name + ": " + clean.Text(err.Error())
	var part *engine.StoppedError
	if errors.As(err, &part) {
		text += "\ncompleted changes are kept; run the same command again to continue, or " + name + " undo to revert them"
	}
	return text
}

// ErrDeadline is the cause of a run that timed out (--wait).
var ErrDeadline = errors.New("not green in time")

// unanswered is an error because of which a result is unknown.
type unanswered struct{ error }

func (e unanswered) Unwrap() error { return e.error }

// FileError returns a file error without its path, which the caller has printed already.
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

// DidYouMean suggests the name that is most similar to name, or returns "" if none is similar.
func DidYouMean(name string, names []string) string {
	if near := nearest.Name(name, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// Unanswered marks err as an error because of which a result is unknown.
func Unanswered(err error) error { return unanswered{err} }
