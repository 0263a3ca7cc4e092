package lines

import (
	"context"
	"errors"
	"os"

	"carrick/ui/model"
)

// Options are the options of the line-based wizard. In provides one answer per line, from a terminal or not.
type Options struct {
	model.Options
	// Interrupts receives a value each time ctrl+c is pressed. nil: never.
	Interrupts <-chan os.Signal
	Getenv     func(string) string // nil: os.Getenv
}

// ErrInterrupted means that the user left with ctrl+c.
var ErrInterrupted = errors.New("interrupted")

// NoInputError means that the input has ended although an answer is required.
type NoInputError struct {
	What    string // the question
	Instead string // the command that does the same without asking
}

func (e *NoInputError) Error() string {
	return "the input ended at " + quoted(e.What) + "; without questions: " + e.Instead
}

// Run walks through a guide in lines until the user leaves, and then prints the state of each step. It returns nil
// after q, ErrInterrupted after ctrl+c, a NoInputError if the input ended, and the cause of ctx if ctx ended the
// wizard.
func Run(ctx context.Context, o Options) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	w := newWalk(inner, o)
	err := w.through()
	cancel()
	defer w.close()
	w.in.restore()
	if errors.Is(err, errQuit) {
		err = nil
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	w.farewell(err)
	if w.out.err != nil && err == nil {
		err = w.out.err
	}
	return err
}
