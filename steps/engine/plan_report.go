package engine

import (
	"time"

	"carrick/cluster/clean"
	"carrick/steps"
)

// PlanReport is a plan as one document. With -o json|yaml, it is the output of diff, and of apply and undo with
// --dry-run. carrick never reads or applies it.
type PlanReport struct {
	APIVersion string       `json:"apiVersion"` // always carrick/v1alpha1
	Kind       string       `json:"kind"`       // always Plan
	Link       string       `json:"link"`
	Guide      string       `json:"guide"`
	Time       time.Time    `json:"time"`
	Undo       bool         `json:"undo"`  // this is the plan of an undo
	Empty      bool         `json:"empty"` // nothing would change, and nothing is pending
	Sides      []ReportSide `json:"sides"`
	Totals     PlanTotals   `json:"totals"`
	Actions    []PlanAction `json:"actions"`
}

// PlanTotals are the totals of a plan.
type PlanTotals struct {
	Verbs     map[steps.Verb]int `json:"verbs"`     // items by verb: create, change, …
	Pending   int                `json:"pending"`   // actions that can't be planned yet
	Conflicts int                `json:"conflicts"` // items with fields that another manager owns
}

// PlanAction is one action of a plan on one side.
type PlanAction struct {
	Step    string     `json:"step"`
	Action  string     `json:"action"`
	Title   string     `json:"title"`
	Side    steps.Side `json:"side"`
	Role    string     `json:"role"`              // the guide's name for the side
	Pending string     `json:"pending,omitempty"` // why it can't be planned yet; in an undo, why it is kept
	Items   []PlanItem `json:"items"`             // empty while the action is pending
}

// PlanItem is one object, file or request that an action affects.
type PlanItem struct {
	Verb steps.Verb `json:"verb"`
	What string     `json:"what"`           // such as "Role renku-sessions/renku" or "POST /clusters"
	Note string     `json:"note,omitempty"` // why it is kept, or what is deleted along with it
	// Held is set in an undo if this link created the object and others depend on it. The object is kept.
	Held      bool           `json:"held,omitempty"`
	ByOthers  bool           `json:"byOthers,omitempty"`  // only in an undo: another program created it, and it is kept
	Refused   bool           `json:"refused,omitempty"`   // the server would reject it now; note says why
	Conflicts []PlanConflict `json:"conflicts,omitempty"` // fields that another manager owns
	Diff      string         `json:"diff,omitempty"`      // unified diff; secrets are masked
}

// PlanConflict is a field that another manager owns.
type PlanConflict struct {
	Field   string `json:"field"`
	Manager string `json:"manager"`
}

// NewPlanReport returns a plan as a document. It strips terminal control characters from text that a cluster returned.
func (s *Session) NewPlanReport(p *Plan, now time.Time) PlanReport {
	r := PlanReport{
		APIVersion: "carrick/v1alpha1", Kind: "Plan", Link: s.link.Name(), Guide: s.guide.Name, Time: now.UTC(),
		Undo: p.Undo, Empty: p.Empty(), Actions: []PlanAction{},
	}
	known := &Plan{}
	for _, side := range steps.Sides {
		r.Sides = append(r.Sides, ReportSide{side, s.guide.Sides[side].Name, s.ends[side].Name})
	}
	for _, a := range p.Actions {
		row := PlanAction{
			Step: a.Step, Action: a.Action, Title: a.Title, Side: a.Side, Role: s.guide.Sides[a.Side].Name,
			Pending: clean.Text(a.Pending), Items: []PlanItem{},
		}
		if a.Pending != "" { // its items are only an upper bound
			r.Totals.Pending++
			r.Actions = append(r.Actions, row)
			continue
		}
		known.Actions = append(known.Actions, a)
		for _, it := range a.Change.Items {
			row.Items = append(row.Items, reportOf(it))
		}
		r.Actions = append(r.Actions, row)
	}
	r.Totals.Verbs, r.Totals.Conflicts = known.Tally(""), len(known.Conflicts())
	return r
}

func reportOf(it steps.Item) PlanItem {
	out := PlanItem{
		Verb: it.Verb, What: clean.Text(it.What), Note: clean.Text(it.Note), Held: it.Held, ByOthers: it.ByOthers,
		Refused: it.Refused,
		Diff:    clean.Text(it.Diff),
	}
	for _, c := range it.Conflicts {
		out.Conflicts = append(out.Conflicts, PlanConflict{clean.Text(c.Field), clean.Text(c.Manager)})
	}
	return out
}
