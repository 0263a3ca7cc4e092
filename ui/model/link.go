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

// Endpoints are the chosen sides of a new link.
type Endpoints map[steps.Side]linkfile.EndpointSpec

// Suggest suggests a name for the link. It prefers handed, which is the name in the facts file, to given. If both are
// "", it combines the names of both sides.
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

// Taken reports whether the other side already uses a context. It also returns the other side.
func (e Endpoints) Taken(context string, by steps.Side) (steps.Side, bool) {
	other := by.Peer()
	return other, context != "" && e[other].Context == context
}

// Likely returns the index of the context to suggest for a side. A context is free if the other side does not use it.
// Likely prefers the current context if it is free, and then the first free context. If none is free, it returns 0.
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

// Same returns an error message if both contexts are the same cluster. If they are not, or if that is unknown, it
// returns "".
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

// NewLink returns a link with the given name and sides. If such a link already exists, NewLink returns the existing
// one.
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
		err = fmt.Errorf("%s already exists, with another guide or other sides; choose another name", path)
	}
	return l, true, err
}

// of reports whether a link connects these sides.
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

// Connect opens a link. If the link is new, Connect then saves it.
func (o *Options) Connect(l *linkfile.Link, existing bool) (*engine.Session, error) {
	s, err := o.Open(l)
	if err == nil && !existing {
		if err = l.Save(); err != nil {
			s.Close()
		}
	}
	return s, err
}
