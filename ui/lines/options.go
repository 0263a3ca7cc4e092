package lines

import (
	"context"
	"errors"
	"os"

	"carrick/ui/model"
)

// Options are the options of the line-based wizard. In provides one answer per line and need not be a terminal.
type Options struct {
	model.Options
	// Interrupts receives a value each time the user presses ctrl+c. It can be nil.
	Interrupts <-chan os.Signal
	Getenv     func(string) string // default: os.Getenv
}

// ErrInterrupted is returned if the user left with ctrl+c.
var ErrInterrupted = errors.New("interrupted")

// NoInputError is returned if the input has ended although an answer is required.
type NoInputError struct {
	What    string // the question
	Instead string // the command that does the same without asking
}

func (e *NoInputError) Error() string {
	return "the input ended at " + quoted(e.What) + "; without questions: " + e.Instead
}

// Run runs the line-based wizard until the user leaves. It then prints the state of each step. After q it returns nil,
// and after ctrl+c ErrInterrupted. If the input ended, it returns a NoInputError. If ctx ended the wizard, it returns
// the cause of ctx.
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
