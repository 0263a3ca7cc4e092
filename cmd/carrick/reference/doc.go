// Package reference describes guides and checks for carrick explain and carrick guides. It accesses no cluster.
package reference

import (
	"slices"

	"carrick/steps"
)

// APIVersion is the version of all documents.
const APIVersion = "carrick/v1alpha1"

// CheckList is the output of explain -o json and -o yaml.
type CheckList struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Checks     []checkDoc `json:"checks"`
}

// GuideList is the output of guides -o json and -o yaml.
type GuideList struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Guides     []guideDoc `json:"guides"`
}

// GuideOnly is the output of guides GUIDE -o json and -o yaml.
type GuideOnly struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	guideDoc   `json:",inline"`
}

// guideDoc describes a guide. Only a GuideOnly includes its steps.
type guideDoc struct {
	Name  string                 `json:"name"`
	Title string                 `json:"title"`
	About string                 `json:"about"`
	Page  string                 `json:"page"` // URL of the upstream instructions that the guide automates
	Sides map[steps.Side]roleDoc `json:"sides"`
	Steps []stepDoc              `json:"steps,omitempty"`
}

type roleDoc struct {
	Name     string     `json:"name"` // the guide's name for the side
	Kind     steps.Kind `json:"kind"` // cluster or host
	Optional bool       `json:"optional,omitempty"`
}

type stepDoc struct {
	Name      string        `json:"name"`
	Title     string        `json:"title"`
	Why       string        `json:"why"`
	Questions []questionDoc `json:"questions,omitempty"`
	Actions   []actionDoc   `json:"actions,omitempty"`
	Checks    []checkDoc    `json:"checks,omitempty"`
}

// questionDoc describes a question. Key is the key of its answer in the link file.
type questionDoc struct {
	Key    string           `json:"key"`
	Title  string           `json:"title"`
	Help   string           `json:"help,omitempty"`
	Kind   steps.AnswerKind `json:"kind"`
	List   bool             `json:"list,omitempty"`
	Empty  bool             `json:"mayStayEmpty,omitempty"`
	Secret bool             `json:"secret,omitempty"`
	Of     []string         `json:"choices,omitempty"`
}

type actionDoc struct {
	Name  string     `json:"name"`
	Title string     `json:"title"`
	On    steps.Side `json:"on"` // local, remote or both
}

type checkDoc struct {
	ID    string     `json:"id"` // for example "renku/token-filled"
	Guide string     `json:"guide"`
	Step  string     `json:"step"`
	Name  string     `json:"name"`
	Title string     `json:"title"`          // an assertion that is true if the check passes
	Why   string     `json:"why"`            // what breaks if it does not pass
	On    steps.Side `json:"on"`             // local, remote or both
	From  string     `json:"from,omitempty"` // where the check runs, unless it runs against the side's API server
	// Checks that block this check when they fail. The prefix "peer/" refers to the other side.
	Needs      []string    `json:"needs,omitempty"`
	NeededBy   []string    `json:"neededBy,omitempty"`   // checks that this check blocks when it fails
	Waits      string      `json:"waits,omitempty"`      // maximum time in status waiting
	FixedBy    []actionDoc `json:"mendedBy,omitempty"`   // actions that fix it
	NotChecked string      `json:"notChecked,omitempty"` // what would be required to check it
	See        []seeDoc    `json:"see"`
}

// seeDoc is a reference to an upstream source.
type seeDoc struct {
	Note      string   `json:"note"`
	Addresses []string `json:"addresses,omitempty"`
}

// Guide returns the output of guides GUIDE -o json and -o yaml.
func Guide(g *steps.Guide) GuideOnly {
	return GuideOnly{APIVersion, "Guide", describe(g, true)}
}

// Guides returns the output of guides -o json and -o yaml.
func Guides(guides []*steps.Guide) GuideList {
	list := GuideList{APIVersion: APIVersion, Kind: "GuideList"}
	for _, g := range guides {
		list.Guides = append(list.Guides, describe(g, false))
	}
	return list
}

func describe(g *steps.Guide, whole bool) guideDoc {
	d := guideDoc{Name: g.Name, Title: g.Title, About: g.About, Page: g.Page, Sides: map[steps.Side]roleDoc{}}
	for side, role := range g.Sides {
		d.Sides[side] = roleDoc{role.Name, role.Kind, role.Optional}
	}
	for i := range g.Steps {
		if whole {
			d.Steps = append(d.Steps, describeStep(g, &g.Steps[i]))
		}
	}
	return d
}

func describeStep(g *steps.Guide, s *steps.Step) stepDoc {
	d := stepDoc{Name: s.Name, Title: s.Title, Why: s.Why}
	for _, q := range s.Ask {
		of := []string(nil)
		for _, c := range q.Of {
			of = append(of, c.Value)
		}
		d.Questions = append(d.Questions, questionDoc{q.Key, q.Title, q.Help, q.Kind, q.Many, q.Opt, q.Secret, of})
	}
	for i := range s.Actions {
		d.Actions = append(d.Actions, describeAction(&s.Actions[i]))
	}
	for i := range s.Checks {
		d.Checks = append(d.Checks, describeCheck(g, s, &s.Checks[i]))
	}
	return d
}

func describeAction(a *steps.Action) actionDoc { return actionDoc{a.Name, a.Title, a.On} }

func describeCheck(g *steps.Guide, s *steps.Step, c *steps.Check) checkDoc {
	d := checkDoc{
		ID: g.Name + "/" + c.Name, Guide: g.Name, Step: s.Name, Name: c.Name, Title: c.Title, Why: c.Why, On: c.On,
		From: c.From, Needs: c.Needs, NeededBy: neededBy(g, c), NotChecked: c.NotChecked,
	}
	if c.Timeout > 0 {
		d.Waits = c.Timeout.String()
	}
	for _, side := range steps.Sides {
		act, _ := g.FixingAction(c, side)
		known := func(m actionDoc) bool { return m.Name == act.Name }
		if act != nil && c.On.Covers(side) && !slices.ContainsFunc(d.FixedBy, known) {
			d.FixedBy = append(d.FixedBy, describeAction(act))
		}
	}
	for _, note := range c.References {
		d.See = append(d.See, seeDoc{note, addresses(note)})
	}
	if len(d.See) == 0 {
		d.See = []seeDoc{{g.Page, addresses(g.Page)}}
	}
	return d
}

// neededBy returns the checks that c blocks when it fails.
func neededBy(g *steps.Guide, c *steps.Check) []string {
	var out []string
	for _, cell := range g.Cells() {
		for _, need := range g.Needs(cell) {
			if need.Check == c.Name && !slices.Contains(out, cell.Check) {
				out = append(out, cell.Check)
			}
		}
	}
	return out
}
