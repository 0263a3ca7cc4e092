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

// Options are the options of both wizards. Guides, Candidates, Preflight, Open, In and Out are required.
type Options struct {
	Guides     []*steps.Guide
	Link       *linkfile.Link                   // an existing link; nil if the user defines a new one
	Guide      string                           // name of the guide of a new link; "" asks the user
	Name       string                           // name of a new link; "" suggests one
	Sides      map[steps.Side]string            // contexts of a new link; the user is asked for missing ones
	Hosts      map[steps.Side]linkfile.HostSpec // sides of a new link that are machines, if known
	Folder     string                           // directory for a new link; default: the working directory
	Candidates func() ([]engine.Candidate, error)
	// Preflight identifies the cluster of a context. It must honor ctx.
	Preflight func(ctx context.Context, name string) (engine.Preflight, error)
	// Open connects to the sides of a link. It returns errors about kubeconfigs and contexts. The wizard closes the
	// session.
	Open func(*linkfile.Link) (*engine.Session, error)
	// Unlock accepts the passphrase of an encrypted facts file. It returns an error if the passphrase is wrong. If Unlock
	// is nil, facts files are not supported.
	Unlock  func(path, passphrase string) error
	Banner  string   // shown with the title, such as "demo: two local control planes"
	Notes   []string // shown before a new link begins, and in the help
	Passing bool     // the clusters and the link file are deleted when the wizard ends
	ASCII   bool     // only ASCII, regardless of the locale
	In      io.Reader
	Out     io.Writer
	Log     *slog.Logger // nil discards the log
}

// LinkPath returns the path for a new link with the given name.
func (o *Options) LinkPath(name string) string { return filepath.Join(o.Folder, name+".yaml") }

// Named returns the guide that the options name for a new link. If it returns nil, the user must be asked.
func (o *Options) Named() *steps.Guide {
	for _, g := range o.Guides {
		if g.Name == o.Guide {
			return g
		}
	}
	return nil
}

// Trouble logs an error.
func (o *Options) Trouble(err error) {
	if o.Log != nil {
		o.Log.Error("wizard", "err", err)
	}
}
