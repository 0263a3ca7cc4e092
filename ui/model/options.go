package model

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// Options are what the wizard is made of, in either form. Guides, Candidates,
// Meet, Open, In and Out are needed; the zero value of the rest is good.
type Options struct {
	Guides     []*steps.Guide
	Link       *linkfile.Link                   // an existing link; nil: a new one is put together first
	Guide      string                           // name of the guide of a new link; "": it is asked
	Name       string                           // name of a new link; "": one is suggested
	Sides      map[steps.Side]string            // contexts of a new link; what is missing is asked
	Hosts      map[steps.Side]linkfile.HostSpec // its sides that are machines, where they are known
	Folder     string                           // where a new link is saved; "": the working directory
	Candidates func() ([]engine.Candidate, error)
	// Meet asks a context who it is. It must honour its context.
	Preflight func(ctx context.Context, name string) (engine.Preflight, error)
	// Open connects what a link says. Its errors are of kubeconfigs and
	// contexts. The wizard closes the session.
	Open func(*linkfile.Link) (*engine.Session, error)
	// Unlock takes the passphrase of a facts file that is sealed by one. The error
	// says why it opens nothing. nil: no file is asked for.
	Unlock  func(path, passphrase string) error
	Banner  string   // said with the title: "demo: two local control planes"
	Notes   []string // said before a new link begins, and in the help
	Passing bool     // the clusters and the link file go with the wizard, so there is nothing to go on with
	ASCII   bool     // nothing but ASCII, whatever the locale
	In      io.Reader
	Out     io.Writer
	Log     *slog.Logger // nil: discarded
}

// LinkPath is the file of a new link of that name.
func (o *Options) LinkPath(name string) string { return filepath.Join(o.Folder, name+".yaml") }

// Named is the guide of a new link, where the options name it; nil: it is asked.
func (o *Options) Named() *steps.Guide {
	for _, g := range o.Guides {
		if g.Name == o.Guide {
			return g
		}
	}
	return nil
}

// Trouble notes an error in the program's log.
func (o *Options) Trouble(err error) {
	if o.Log != nil {
		o.Log.Error("wizard", "err", err)
	}
}
