package steps

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"carrick/cluster/nearest"
	"carrick/cluster/web"
)

// Side is one of the two clusters or hosts that a link connects. Users see the guide's own names for the sides, such as
// "consumer" and "provider".
type Side string

// Both is used only for checks and facts. They then exist once per side.
const (
	Local  Side = "local"
	Remote Side = "remote"
	Both   Side = "both"
)

// Sides lists Local and Remote in display order.
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

// Kind is the kind of a side.
type Kind string

const (
	Cluster Kind = "cluster" // a Kubernetes cluster
	Host    Kind = "host"    // a machine with files and commands
)

// Role describes a side of a guide.
type Role struct {
	Name     string
	Kind     Kind
	Optional bool
}

// Flag returns the side's name as one word, such as "web-node". It is used for --side and in file names.
func (r Role) Flag() string { return strings.ReplaceAll(r.Name, " ", "-") }

// Example returns an example of how a link file describes such a side.
func (r Role) Example() string {
	if r.Kind == Host {
		return "{host: {root: /}} on that machine, or {host: {root: DIRECTORY}}, or {facts: FILE} from its admin"
	}
	return "{context: NAME}, or {facts: FILE} from its admin"
}

// Guide describes one complete setup as data.
type Guide struct {
	Name  string // lower-case, such as "liqo"; also the name of the guide's directories
	Title string // such as "Liqo declarative peering"
	About string // two or three sentences about what the guide connects and the result
	Page  string // URL of the published instructions that the guide replaces
	// Readme is the guide's README. The command `carrick help NAME` shows it. If Readme is empty, help has no such topic.
	Readme string
	Sides  map[Side]Role
	Steps  []Step // in apply order
	// Undo lists actions in undo order, where it differs from the reverse apply order. Actions that are not listed follow
	// in reverse apply order.
	Undo []string
	// UndoAlone lists actions that are undone before the actions in Undo if the link has only one of its sides.
	UndoAlone []string
	// Retired lists actions of earlier versions of the guide that need no undo. What they wrote is removed along with the
	// rest. Their inventory entries are ignored.
	Retired []string
	// Renamed maps old names of checks and old keys of questions to the current ones. Link files, facts files and flags
	// can still contain old names.
	Renamed map[string]string
	// API returns the address of the setup's HTTP API, as far as answers and facts determine it. API is nil if the setup
	// has none. See Env.API.
	API func(context.Context, Env) (web.Address, error)
}

// Step is one screen of a guide.
type Step struct {
	Name, Title string
	Why         string         // one or two sentences at the top of the screen
	Map         MapRow         // the step in the map of both sides; if zero, the map shows the step's title
	When        func(Env) bool // nil means always
	Ask         []Question
	Facts       []Fact
	Actions     []Action
	Checks      []Check
}

// MapRow is what a step contributes to the map of both sides: an object on each side, and an arrow between them.
type MapRow struct {
	Local, Remote string // two or three words, such as "gateway"; "" if the step has no object on that side
	Arrow         Side   // side to which the arrow points, or Both; "" if the step connects nothing
}

// Label returns the object on a side.
func (m MapRow) Label(side Side) string {
	if side == Local {
		return m.Local
	}
	return m.Remote
}

// Step returns the named step, or nil.
func (g *Guide) Step(name string) *Step {
	for i := range g.Steps {
		if g.Steps[i].Name == name {
			return &g.Steps[i]
		}
	}
	return nil
}

// Names returns the names of all steps and checks.
func (g *Guide) Names() (steps, checks []string) {
	for i := range g.Steps {
		steps = append(steps, g.Steps[i].Name)
		for k := range g.Steps[i].Checks {
			checks = append(checks, g.Steps[i].Checks[k].Name)
		}
	}
	return steps, checks
}

// Keys returns the keys of all questions.
func (g *Guide) Keys() []string {
	var out []string
	for i := range g.Steps {
		for k := range g.Steps[i].Ask {
			out = append(out, g.Steps[i].Ask[k].Key)
		}
	}
	return out
}

// Check returns the named check and its step, or nil.
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

// Current returns the current name of a check or question. name can be an old name.
func (g *Guide) Current(name string) string { return cmp.Or(g.Renamed[name], name) }

// Action returns the named action and its step, or nil.
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

// OwnSide in a FixedBy is replaced by the guide's name for the checked side.
const OwnSide = "${side}"

// FixingAction returns the action that makes a check pass on a side, and its step. If no action does, it returns nil.
func (g *Guide) FixingAction(c *Check, side Side) (*Action, *Step) {
	return g.Action(strings.ReplaceAll(c.FixedBy, OwnSide, g.Sides[side].Name))
}

// Offer returns the action that fixes a check with result r, and its step. If no action fixes the check, or if the
// answers don't configure the action, it returns nil.
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

// Question returns the question with the given key and its step, or nil.
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

// Fact returns the named fact that is read on side, or nil.
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

// FindGuide returns the named guide. If there is none, the error lists the names of all guides.
func FindGuide(guides []*Guide, name string) (*Guide, error) {
	var names []string
	for _, g := range guides {
		if g.Name == name {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return nil, fmt.Errorf(
		"guide %q does not exist%s; choose one of: %s", name, nearest.Hint(name, names), strings.Join(names, ", "),
	)
}
