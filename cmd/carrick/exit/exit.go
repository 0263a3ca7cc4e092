// Package exit has the exit codes of carrick, and the errors and messages that lead to them.
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

// The exit codes. Where several hold, the first of this list counts.
const (
	Interrupted = 130 // ctrl+c, or a signal
	Deadline    = 124 // --wait ran out
	Usage       = 2   // usage, or an answer is missing and nobody is there to ask
	PartWay     = 6   // stopped part-way: some things were changed; or an undo did, and left files that the link wrote
	Failed      = 3   // a check failed; for diff: there are changes
	Unknown     = 5   // something is unknown or still waiting; for diff: nothing changes, of what is known
	Warnings    = 4   // warnings that --fail-on names
	Other       = 1
)

// Verdict is an outcome that is no error: what was asked for was done, and the
// exit code says what was found.
type Verdict int

func (v Verdict) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

// usageError is a fault in how carrick was called, or in what it was given.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// AsUsage returns err as a fault in how carrick was called.
func AsUsage(err error) error { return usageError{err} }

// Usagef returns a fault in how carrick was called, or in what it was given.
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

// Message is what is said of an error on standard error by the program of that name; "" where all was said.
func Message(name string, err error) string {
	var v Verdict
	switch {
	case err == nil, errors.As(err, &v):
		return ""
	case errors.Is(err, ui.ErrInterrupted), errors.Is(err, context.Canceled):
		return name + ": interrupted; nothing is lost: the clusters are the state, so the same command goes on from here"
	}
	text := name + ": " + clean.Text(err.Error())
	var part *engine.StoppedError
	if errors.As(err, &part) {
		text += "\nwhat was done stays; the same command goes on from here, and " + name + " undo takes it back"
	}
	return text
}

// ErrDeadline is the cause of a run that --wait has ended.
var ErrDeadline = errors.New("not green in time")

// unanswered is an error because of which something can't be known.
type unanswered struct{ error }

func (e unanswered) Unwrap() error { return e.error }

// FileError is an error of a file without its path, which is said already.
func FileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("you may not read this file")
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// DidYouMean asks whether the nearest of some names was meant; "" where none is near.
func DidYouMean(name string, names []string) string {
	if near := nearest.Name(name, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// Unanswered returns err as the reason why something can't be known.
func Unanswered(err error) error { return unanswered{err} }
