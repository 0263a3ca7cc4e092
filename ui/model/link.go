package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// Endpoints are the two sides of a new link, as far as they are chosen.
type Endpoints map[steps.Side]linkfile.EndpointSpec

// Suggest suggests a name for the link: that of the facts file, else the given one, else one composed of both sides'
// names.
func (e Endpoints) Suggest(g *steps.Guide, handed, given string) string {
	switch {
	case handed != "":
		return handed
	case given != "":
		return given
	}
	name := func(side steps.Side) string {
		if e[side].Host != nil || e[side].Facts != "" {
			return g.Sides[side].Name
		}
		return e[side].Context
	}
	return engine.SuggestLinkName(g.Name, name(steps.Local), name(steps.Remote))
}

// Taken reports whether a context is already chosen for the other side, and returns that side.
func (e Endpoints) Taken(context string, by steps.Side) (steps.Side, bool) {
	other := by.Peer()
	return other, context != "" && e[other].Context == context
}

// Likely returns the index of the current context if it is free, else of the first context that is not the other side,
// or 0 if there is none.
func (e Endpoints) Likely(list []engine.Candidate, side steps.Side) int {
	free := -1
	for i, c := range list {
		_, taken := e.Taken(c.Context, side)
		if c.Current && !taken {
			return i
		}
		if free < 0 && !taken {
			free = i
		}
	}
	return max(0, free)
}

// Same returns an error message if both contexts are the same cluster. It returns "" if they are not, or if that is
// unknown.
func (e Endpoints) Same(met func(context string) engine.Preflight) string {
	one, two := e[steps.Local].Context, e[steps.Remote].Context
	if one == "" || two == "" {
		return ""
	}
	if uid := met(one).UID; uid == "" || uid != met(two).UID {
		return ""
	}
	return fmt.Sprintf(
		"%s and %s are the same cluster: their kube-system namespaces have the same UID. Pick two clusters.", one, two,
	)
}

// NewLink returns a link of that name between these sides: the existing one if it joins them, else a new one.
func (o *Options) NewLink(g *steps.Guide, name string, ends Endpoints) (l *linkfile.Link, existing bool, err error) {
	path := o.LinkPath(name)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		l := linkfile.New(g.Name, name)
		l.Path = path
		for side, spec := range ends {
			*l.Side(side) = spec
		}
		return l, false, nil
	}
	l, err = linkfile.Load(path, o.Guides)
	if err == nil && (l.Guide != g.Name || !ends.of(l)) {
		err = fmt.Errorf("%s already exists and joins something else; choose another name", path)
	}
	return l, true, err
}

// of reports whether a link joins these sides.
func (e Endpoints) of(l *linkfile.Link) bool {
	for _, side := range steps.Sides {
		have, want := l.Side(side), e[side]
		if have.Context != want.Context || have.Facts != want.Facts || (have.Host == nil) != (want.Host == nil) {
			return false
		}
		if have.Host != nil && have.Host.Root != want.Host.Root {
			return false
		}
	}
	return true
}

// Connect opens a link, and saves a new one afterwards.
func (o *Options) Connect(l *linkfile.Link, existing bool) (*engine.Session, error) {
	s, err := o.Open(l)
	if err == nil && !existing {
		if err = l.Save(); err != nil {
			s.Close()
		}
	}
	return s, err
}
