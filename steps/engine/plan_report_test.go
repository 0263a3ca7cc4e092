package engine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// The totals of a plan report match its items, without the upper bounds of pending actions. Names and notes from a
// cluster are cleaned.
func TestPlanReport(t *testing.T) {
	s := &Session{
		guide: &steps.Guide{
			Name: "hello", Sides: map[steps.Side]steps.Role{steps.Local: {Name: "desk"}, steps.Remote: {Name: "shelf"}},
		},
		link: linkfile.New("hello", "a"), ends: map[steps.Side]Endpoint{steps.Local: {Name: "kind-milan"}},
	}
	p := &Plan{Actions: []Planned{
		{Step: "one", Action: "note", Title: "Write", Side: steps.Local, Change: steps.Change{Items: []steps.Item{
			{Verb: steps.Create, What: "ConfigMap a/\x1b[31mb", Diff: "+a: 1\n", Hash: "h"},
			{
				Verb: steps.Update, What: "ConfigMap a/c", Note: "not \x07now", Refused: true,
				Conflicts: []failure.Conflict{{Manager: "kube\x07ctl", Field: ".data.x"}},
			},
			{Verb: steps.Leave, What: "ConfigMap a/d", Note: "a/e uses it", Held: true},
		}}},
		{
			Step: "two", Action: "later", Title: "Wait", Side: steps.Remote,
			Pending: "known after step 1", Change: steps.Change{Items: []steps.Item{
				{Verb: steps.Create, What: "ConfigMap a/f", Conflicts: []failure.Conflict{{Manager: "helm", Field: ".data.y"}}},
			}},
		},
	}}
	got := s.NewPlanReport(p, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	want := PlanReport{
		APIVersion: "carrick/v1alpha1", Kind: "Plan", Link: "a", Guide: "hello",
		Time:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Sides: []ReportSide{{steps.Local, "desk", "kind-milan"}, {steps.Remote, "shelf", ""}},
		Totals: PlanTotals{
			Verbs: map[steps.Verb]int{steps.Create: 1, steps.Update: 1, steps.Leave: 1}, Pending: 1, Conflicts: 1,
		},
		Actions: []PlanAction{
			{Step: "one", Action: "note", Title: "Write", Side: steps.Local, Role: "desk", Items: []PlanItem{
				{Verb: steps.Create, What: "ConfigMap a/b", Diff: "+a: 1\n"},
				{
					Verb: steps.Update, What: "ConfigMap a/c", Note: "not now", Refused: true,
					Conflicts: []PlanConflict{{".data.x", "kubectl"}},
				},
				{Verb: steps.Leave, What: "ConfigMap a/d", Note: "a/e uses it", Held: true},
			}},
			{
				Step: "two", Action: "later", Title: "Wait", Side: steps.Remote, Role: "shelf", Pending: "known after step 1",
				Items: []PlanItem{},
			},
		},
	}
	if held := p.Held(); len(held) != 1 || held[0].What != "ConfigMap a/d" {
		t.Errorf("held: %v", held)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again PlanReport
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, again); d != "" {
		t.Error(d)
	}
}
