package steps

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"carrick/cluster/web"
)

// Side is one of the two clusters or hosts that a link joins. Users see the guide's own names of the sides ("consumer",
// "provider").
type Side string

// The sides. Only checks and facts use Both: they exist once on each side.
const (
	Local  Side = "local"
	Remote Side = "remote"
	Both   Side = "both"
)

// Sides are the two real sides, in display order.
var Sides = []Side{Local, Remote}

// Peer returns the other side.
func (s Side) Peer() Side {
	if s == Local {
		return Remote
	}
	return Local
}

// Covers reports whether something declared for s applies to side.
func (s Side) Covers(side Side) bool { return s == Both || s == side }

// Kind is the kind of a side: a cluster or a host.
type Kind string

// The kinds of sides.
const (
	Cluster Kind = "cluster" // a Kubernetes cluster
	Host    Kind = "host"    // a machine: files and commands
)

// Role describes a side of a guide: the guide's name for it, its kind, and whether it is optional.
type Role struct {
	Name     string
	Kind     Kind
	Optional bool
}

// Flag returns the side's name as one word, such as "web-node", for --side and for file names.
func (r Role) Flag() string { return strings.ReplaceAll(r.Name, " ", "-") }

// Example returns an example of how a link file describes such a side.
func (r Role) Example() string {
	if r.Kind == Host {
		return "{host: {root: /}} on that machine, or {host: {root: FOLDER}}, or {facts: FILE} from its admin"
	}
	return "{context: NAME}, or {facts: FILE} from its admin"
}

// Guide describes one complete set-up, as data.
type Guide struct {
	Name  string // "liqo": lower-case, also the name of its folders
	Title string // "Liqo declarative peering"
	About string // two or three sentences: what it joins, and the result
	Page  string // the published page that it replaces
	// Readme is the guide's README, which `carrick help NAME` shows. If it is empty, help has no such topic.
	Readme string
	Sides  map[Side]Role
	Steps  []Step // in the order in which they are applied
	// Undo lists actions in the order in which they are undone, where that differs from the reverse order of applying.
	// Actions that are not listed follow, in reverse order.
	Undo []string
	// UndoAlone lists actions that are undone before those of Undo if the link has only one of its sides.
	UndoAlone []string
	// Retired lists actions of earlier versions of the guide that need no undo, because what they wrote is removed
	// along with the rest. Their inventory entries are ignored.
	Retired []string
	// Renamed maps names of checks and keys of questions of earlier versions to today's. Link files, facts files and flags
	// may still contain them.
	Renamed map[string]string
	// API returns the address of the HTTP API that belongs to the set-up, as far as answers and facts determine it. It is
	// nil if there is none. See Env.API.
	API func(context.Context, Env) (web.Address, error)
}

// Step is one screen of a guide.
type Step struct {
	Name, Title string
	Why         string         // one or two sentences at the top of the screen
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

// Current returns today's name of a check or question. The name may be one of an earlier version.
func (g *Guide) Current(name string) string { return cmp.Or(g.Renamed[name], name) }

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

// OwnSide in a FixedBy is replaced by the name of the checked side.
const OwnSide = "${side}"

// FixingAction returns the action that makes a check pass on a side and its step, or nil if no action does.
func (g *Guide) FixingAction(c *Check, side Side) (*Action, *Step) {
	return g.Action(strings.ReplaceAll(c.FixedBy, OwnSide, g.Sides[side].Name))
}

// Offer returns the action that fixes a check with result r, and its step. It returns nil if there is none or the
// answers don't configure it.
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

// Fact returns the fact of that name that is read on side, or nil.
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

// SecretFacts returns the names of a side's secret facts.
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

// FindGuide returns the guide of that name. The error lists the names of all guides.
func FindGuide(guides []*Guide, name string) (*Guide, error) {
	var names []string
	for _, g := range guides {
		if g.Name == name {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return nil, fmt.Errorf("there is no guide %q; choose one of: %s", name, strings.Join(names, ", "))
}
