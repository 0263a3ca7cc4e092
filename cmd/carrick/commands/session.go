package commands

import (
	"context"
	"fmt"
	"io/fs"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// open reads a link file and the secrets in --secret, and returns a session. It sends no requests to the clusters.
func (a *app) open(ctx context.Context, path string, o cluster.Options) (*engine.Session, error) {
	l, err := a.load(path)
	if err != nil {
		return nil, err
	}
	g, err := steps.FindGuide(a.Guides, l.Guide)
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	if err := a.readSecrets(ctx, g); err != nil {
		return nil, err
	}
	return a.session(l, o)
}

// load reads a link file. It prints a note for each old name in the file.
func (a *app) load(path string) (*linkfile.Link, error) {
	l, err := linkfile.Load(path, a.Guides)
	if err != nil {
		return nil, err
	}
	for _, said := range l.Renamed {
		fmt.Fprintf(a.err, "%s: %s\n", path, said)
	}
	return l, nil
}

func (a *app) session(l *linkfile.Link, o cluster.Options) (*engine.Session, error) {
	g, err := steps.FindGuide(a.Guides, l.Guide)
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	secrets, err := a.secrets.of(g)
	if err != nil {
		return nil, err
	}
	o.Log = a.logger()
	words := a.err // also receives the output of login plugins and the warnings from API servers
	if a.onScreen {
		words = a.logFile
	}
	if err := a.keys.confirm(l); err != nil {
		return nil, err
	}
	keys, err := a.keys.read(a, l)
	if err != nil {
		return nil, err
	}
	ends := map[steps.Side]engine.Endpoint{}
	flags := map[steps.Side]*accessFlags{steps.Local: &a.local, steps.Remote: &a.remote}
	for _, side := range steps.Sides {
		access := flags[side].access()
		access.Stderr = words
		end, err := engine.OpenEndpoint(l, side, g, access, keys, o)
		if err != nil && a.handing && l.Side(side).Facts != "" {
			fmt.Fprintf(
				a.err, "continuing without the other side's facts file, which cannot be used: %s\n", clean.Text(err.Error()),
			)
			end, err = engine.Endpoint{Absent: "the facts file of the " + g.Sides[side].Name + " cannot be used"}, nil
		}
		if err != nil {
			for _, e := range ends {
				e.Close()
			}
			return nil, exit.AsUsage(err)
		}
		ends[side] = end
	}
	files, err := fs.Sub(a.Assets, g.Name)
	if err != nil {
		return nil, err
	}
	audit, err := engine.OpenAudit()
	a.audit, a.unaudited = audit, err // without an audit log, changes are refused but checks still work
	return engine.NewSession(engine.SessionOptions{
		Guide: g, Link: l, Endpoints: ends, Assets: files, Secrets: secrets, Attended: a.attended, Log: a.logger(),
		Audit: audit,
	}), nil
}
