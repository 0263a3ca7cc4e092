package lines

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// Options are what the wizard in lines is made of. They mean what they mean on
// the screen (ui.Options). Guides, Candidates, Meet, Open, LinkPath, In and Out
// are needed; the zero value of the rest is good.
type Options struct {
	Guides     []*steps.Guide
	Link       *linkfile.Link                   // an existing link; nil: a new one is put together first
	Guide      string                           // name of the guide of a new link; "": it is asked
	Name       string                           // name of a new link; "": it is asked
	Sides      map[steps.Side]string            // contexts of a new link; what is missing is asked
	Hosts      map[steps.Side]linkfile.HostSpec // what is known of folders that are typed
	Candidates func() ([]engine.Candidate, error)
	Meet       func(ctx context.Context, name string) (engine.Meeting, error)
	Open       func(*linkfile.Link) (*engine.Session, error) // Run closes the session
	Unlock     func(path, passphrase string) error           // nil: no file of facts is asked for
	LinkPath   func(name string) string                      // where a new link is saved
	Banner     string                                        // said first
	Notes      []string                                      // said before a new link begins, and under ?
	Passing    bool                                          // the clusters and the link file go with the wizard
	ASCII      bool                                          // nothing but ASCII of its own
	In         io.Reader                                     // a line an answer; a terminal or not
	Out        io.Writer
	Log        *slog.Logger // nil: discarded
	// Interrupts brings one value each time ctrl+c is pressed. nil: never.
	Interrupts <-chan os.Signal
	Getenv     func(string) string // nil: os.Getenv
}

// ErrInterrupted says that the user left with ctrl+c.
var ErrInterrupted = errors.New("interrupted")

// NobodyError says that the input has ended where an answer is needed.
type NobodyError struct {
	What    string // what was asked
	Instead string // the command that does the same without asking
}

func (e *NobodyError) Error() string {
	return "there is nobody to ask: the input ended at " + quoted(e.What) + "; without asking: " + e.Instead
}

// Run walks through a guide in lines until the user leaves, and then says where
// everything stands. It returns nil after q, ErrInterrupted after ctrl+c, a
// NobodyError where the input ended, ctx's error where that ended it.
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
