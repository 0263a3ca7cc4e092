package steps

import (
	"context"
	"fmt"
	"strings"

	"carrick/cluster/web"
)

// Side is one of the two ends of a link. Guides give the sides names of their
// own ("consumer", "provider"); those are what a user sees.
type Side string

// The sides. Both is for checks alone: they run once on each side.
const (
	Local  Side = "local"
	Remote Side = "remote"
	Both   Side = "both"
)

// Sides are the two real sides, in the order in which they are shown.
var Sides = []Side{Local, Remote}

// Peer is the other side.
func (s Side) Peer() Side {
	if s == Local {
		return Remote
	}
	return Local
}

// Covers tells whether something that is declared for s happens on side.
func (s Side) Covers(side Side) bool { return s == Both || s == side }

// Kind says what stands on a side.
type Kind string

// The kinds of sides.
const (
	Cluster Kind = "cluster" // a Kubernetes cluster
	Host    Kind = "host"    // a machine: files and commands
)

// Role is what a guide says of a side: the guide's own name for it, what
// stands there, and whether the guide can do without it.
type Role struct {
	Name     string
	Kind     Kind
	Optional bool
}

// Flag is the side's name as one word, for --side and for names of files:
// "web-node".
func (r Role) Flag() string { return strings.ReplaceAll(r.Name, " ", "-") }

// Example is what a link file says of such a side.
func (r Role) Example() string {
	if r.Kind == Host {
		return "{host: {root: /}} on that machine, or {host: {root: FOLDER}}, or {facts: FILE} from its admin"
	}
	return "{context: NAME}, or {facts: FILE} from its admin"
}

// Guide is one set-up from start to end.
type Guide struct {
	Name  string // "liqo": lower-case, the name of its folders
	Title string // "Liqo declarative peering"
	About string // two or three sentences: what it joins and what stands at the end
	Page  string // the published page that it takes the place of
	// Readme is the guide's README: what `carrick help NAME` shows. Without one there is no such topic.
	Readme string
	Sides  map[Side]Role
	Steps  []Step // in the order of doing
	// Undo names actions in the order of undoing, where that is not the
	// reverse of doing. Actions that it leaves out come after, in reverse.
	Undo []string
	// UndoAlone names actions that go before those of Undo where the link has only one of its sides.
	UndoAlone []string
	// Retired names actions of earlier versions that have nothing to take back: what they wrote goes along with the rest.
	// What an inventory has of them counts for nothing.
	Retired []string
	// API says where the HTTP API is that belongs to the set-up, as far as
	// answers and facts tell; nil: there is none. See Env.API.
	API func(context.Context, Env) (web.Address, error)
}

// Step is one screen of a guide.
type Step struct {
	Name, Title string
	Why         string         // one or two sentences, for the top of the screen
	When        func(Env) bool // nil: always
	Ask         []Question
	Facts       []Fact
	Actions     []Action
	Checks      []Check
}

// Step returns the step of that name, or nil.
func (g *Guide) Step(name string) *Step {
	for i := range g.Steps {
		if g.Steps[i].Name == name {
			return &g.Steps[i]
		}
	}
	return nil
}

// Check returns the check of that name and its step, or nil.
func (g *Guide) Check(name string) (*Check, *Step) {
	for i := range g.Steps {
		for j := range g.Steps[i].Checks {
			if g.Steps[i].Checks[j].Name == name {
				return &g.Steps[i].Checks[j], &g.Steps[i]
			}
		}
	}
	return nil, nil
}

// Action returns the action of that name and its step, or nil.
func (g *Guide) Action(name string) (*Action, *Step) {
	for i := range g.Steps {
		for j := range g.Steps[i].Actions {
			if g.Steps[i].Actions[j].Name == name {
				return &g.Steps[i].Actions[j], &g.Steps[i]
			}
		}
	}
	return nil, nil
}

// OwnSide in a FixedBy stands for the name of the side that was looked at.
const OwnSide = "${side}"

// Mending returns the action that makes a check hold on a side, and its step;
// nil where carrick has none.
func (g *Guide) FixingAction(c *Check, side Side) (*Action, *Step) {
	return g.Action(strings.ReplaceAll(c.FixedBy, OwnSide, g.Sides[side].Name))
}

// Offer is the action, and its step, by which a check that said r can be mended: nil
// where the answers don't ask for that.
func (g *Guide) Offer(c *Check, side Side, r Result) (*Action, *Step) {
	switch {
	case r.alone:
		return nil, nil
	case r.mend != "":
		return g.Action(r.mend)
	case r.Unasked:
		return nil, nil
	}
	return g.FixingAction(c, side)
}

// Question returns the question of that key and its step, or nil.
func (g *Guide) Question(key string) (*Question, *Step) {
	for i := range g.Steps {
		for j := range g.Steps[i].Ask {
			if g.Steps[i].Ask[j].Key == key {
				return &g.Steps[i].Ask[j], &g.Steps[i]
			}
		}
	}
	return nil, nil
}

// Fact returns the fact of that name as it is learnt on side, or nil.
func (g *Guide) Fact(name string, side Side) *Fact {
	for i := range g.Steps {
		for j := range g.Steps[i].Facts {
			f := &g.Steps[i].Facts[j]
			if f.Name == name && f.On.Covers(side) {
				return f
			}
		}
	}
	return nil
}

// SecretFacts are the names of a side's facts that are written nowhere in the open.
func (g *Guide) SecretFacts(side Side) []string {
	var out []string
	for i := range g.Steps {
		for j := range g.Steps[i].Facts {
			if f := &g.Steps[i].Facts[j]; f.Secret && f.On.Covers(side) {
				out = append(out, f.Name)
			}
		}
	}
	return out
}

// FindGuide returns the guide of that name; the error names those there are.
func FindGuide(guides []*Guide, name string) (*Guide, error) {
	var names []string
	for _, g := range guides {
		if g.Name == name {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return nil, fmt.Errorf("no guide is called %q; there are: %s", name, strings.Join(names, ", "))
}
