package ui

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// Options are what the wizard is made of. Guides, Candidates, Meet, Open,
// LinkPath, In and Out are needed; the zero value of the rest is good.
type Options struct {
	Guides     []*steps.Guide
	Link       *linkfile.Link                   // an existing link; nil: a new one is put together first
	Guide      string                           // name of the guide of a new link; "": it is asked
	Name       string                           // name of a new link; "": one is suggested
	Sides      map[steps.Side]string            // contexts of a new link; what is missing is asked
	Hosts      map[steps.Side]linkfile.HostSpec // its sides that are machines, where they are known
	Candidates func() ([]engine.Candidate, error)
	// Meet asks a context who it is. It is called in a command, for contexts
	// that are on screen, and must honour its context.
	Meet func(ctx context.Context, name string) (engine.Meeting, error)
	// Open connects what a link says. Its errors are of kubeconfigs and
	// contexts. The wizard closes the session.
	Open func(*linkfile.Link) (*engine.Session, error)
	// Unlock takes the passphrase of a file of facts that is sealed by one. The error
	// says why it opens nothing. nil: no file is asked for.
	Unlock   func(path, passphrase string) error
	LinkPath func(name string) string // where a new link is saved
	Version  string                   // of carrick, for reports; "": not said
	Banner   string                   // said beside the title: "demo: two local control planes"
	Notes    []string                 // said before a new link begins, and under ?
	Passing  bool                     // the clusters and the link file go with the wizard, so nothing is to go on with
	Walk     *Walk                    // the wizard walks by itself; nil: it waits for keys
	Color    string                   // auto (""), always or never
	Theme    string                   // one of Themes; "" is auto: what fits the terminal's background
	ASCII    bool                     // nothing but ASCII, whatever the locale
	// In and Out are both terminals, else Run returns ErrNoTerminal.
	In  io.Reader
	Out io.Writer
	Err io.Writer
	Log *slog.Logger // nil: discarded
}

var (
	// ErrInterrupted says that the user left with ctrl+c.
	ErrInterrupted = errors.New("interrupted")
	// ErrNoTerminal says that there is no terminal to show the wizard on.
	ErrNoTerminal = errors.New("the wizard needs a terminal; carrick check, diff, apply and undo do without")
)
