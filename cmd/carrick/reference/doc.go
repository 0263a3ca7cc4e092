// Package reference describes guides and their checks without a cluster: what carrick explain and carrick guides print.
package reference

import (
	"slices"

	"carrick/steps"
)

// APIVersion is that of all documents.
const APIVersion = "carrick/v1alpha1"

// CheckList is what explain prints with -o json|yaml.
type CheckList struct {
	APIVersion string     `json:"apiVersion"` // carrick/v1alpha1
	Kind       string     `json:"kind"`       // CheckList
	Checks     []checkDoc `json:"checks"`
}

// GuideList is what guides prints with -o json|yaml.
type GuideList struct {
	APIVersion string     `json:"apiVersion"` // carrick/v1alpha1
	Kind       string     `json:"kind"`       // GuideList
	Guides     []guideDoc `json:"guides"`
}

// GuideOnly is what guides GUIDE prints with -o json|yaml.
type GuideOnly struct {
	APIVersion string `json:"apiVersion"` // carrick/v1alpha1
	Kind       string `json:"kind"`       // Guide
	guideDoc   `json:",inline"`
}

// guideDoc is a guide. Its steps are there where it was asked for alone.
type guideDoc struct {
	Name  string                 `json:"name"`
	Title string                 `json:"title"`
	About string                 `json:"about"`
	Page  string                 `json:"page"` // the published page that it takes the place of
	Sides map[steps.Side]roleDoc `json:"sides"`
	Steps []stepDoc              `json:"steps,omitempty"`
}

// roleDoc is what stands on a side.
type roleDoc struct {
	Name     string     `json:"name"` // the guide's word for the side
	Kind     steps.Kind `json:"kind"` // cluster or host
	Optional bool       `json:"optional,omitempty"`
}

// stepDoc is one step.
type stepDoc struct {
	Name      string        `json:"name"`
	Title     string        `json:"title"`
	Why       string        `json:"why"`
	Questions []questionDoc `json:"questions,omitempty"`
	Actions   []actionDoc   `json:"actions,omitempty"`
	Checks    []checkDoc    `json:"checks,omitempty"`
}

// questionDoc is one question; key is that of the answer in the link file.
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

// actionDoc is one change.
type actionDoc struct {
	Name  string     `json:"name"`
	Title string     `json:"title"`
	On    steps.Side `json:"on"` // local, remote or both
}

// checkDoc is all that is known of a check without looking at a cluster.
type checkDoc struct {
	ID    string     `json:"id"` // "renku/token-filled"
	Guide string     `json:"guide"`
	Step  string     `json:"step"`
	Name  string     `json:"name"`
	Title string     `json:"title"`          // what holds when it passes
	Why   string     `json:"why"`            // what goes wrong later if it does not
	On    steps.Side `json:"on"`             // local, remote or both
	From  string     `json:"from,omitempty"` // where it looks from, when not the side's API
	// checks without which it says nothing; "peer/…" is the other side's
	Needs      []string    `json:"needs,omitempty"`
	NeededBy   []string    `json:"neededBy,omitempty"`   // checks that say nothing where it fails
	Waits      string      `json:"waits,omitempty"`      // how long it may be waiting
	FixedBy    []actionDoc `json:"mendedBy,omitempty"`   // what makes it hold
	NotChecked string      `json:"notChecked,omitempty"` // what it would take to look
	See        []seeDoc    `json:"see"`
}

// seeDoc is where upstream says so.
type seeDoc struct {
	Note      string   `json:"note"`
	Addresses []string `json:"addresses,omitempty"`
}

// Guide returns a guide as guides GUIDE prints it with -o json|yaml.
func Guide(g *steps.Guide) GuideOnly {
	return GuideOnly{APIVersion, "Guide", describe(g, true)}
}

// Guides returns guides as guides prints them with -o json|yaml.
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

// neededBy are the checks that say nothing where one does not hold.
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
