package model_test

import (
	"testing"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// A run that has succeeded counts what its plan shows, whatever words its actions used, and what pending actions did. It
// does not count what another run had applied in the meantime, of which its action reports nothing.
func TestASucceededRunCountsWhatThePlanShows(t *testing.T) {
	plan := &engine.Plan{Actions: []engine.Planned{
		{Action: "object", Change: steps.Change{Items: []steps.Item{{Verb: steps.Create, What: "Secret a/b"}}}},
		{Action: "api", Change: steps.Change{Items: []steps.Item{{Verb: steps.Create, What: "POST /clusters"}}}},
		{Action: "watch", Change: steps.Change{Items: []steps.Item{{Verb: steps.Run, What: "a test watch"}}}},
		{Action: "theirs", Change: steps.Change{Items: []steps.Item{{Verb: steps.Create, What: "Secret a/e"}}}},
		{Action: "later", Pending: "known after the watch"},
		{Action: "unused", Pending: "known after the watch"},
	}}
	r := model.NewRun(plan)
	for _, e := range []steps.Event{
		{Action: "object", Verb: steps.Create, What: "Secret a/b"},
		{Action: "api", Verb: steps.Create, What: "cluster 7 in Renku"},
		{Action: "watch", Text: "watching"},
		{Action: "later", Verb: steps.Update, What: "Deployment a/c"},
		{Action: "later", Verb: steps.Update, What: "Deployment a/d"},
	} {
		r.Heard(e)
	}
	if r.Changed != 3 {
		t.Errorf("before the end it counts %d changes", r.Changed)
	}
	if r.Succeeded(); r.Changed != 5 || r.Count() != "4 of 6 or more" {
		t.Errorf("at the end it counts %d changes, %s", r.Changed, r.Count())
	}
}
