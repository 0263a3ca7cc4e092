package engine

import (
	"strings"
	"testing"

	"carrick/steps"
)

// If an object can't be read any more, that reason is reported, because carrick cannot know whether the cluster has
// changed.
func TestWhyAPlanIsAnotherOne(t *testing.T) {
	changed := steps.Change{Items: []steps.Item{{Verb: steps.Update, What: "Secret a/b"}}}
	if err := whyOther(changed); err != errOtherPlan {
		t.Errorf("of a change: %v", err)
	}
	changed.Items = append(
		changed.Items,
		steps.Item{Verb: steps.Update, What: "Role a/c", Note: "cannot be read: jane may not get roles", Refused: true},
	)
	if err := whyOther(changed); !strings.Contains(err.Error(), "Role a/c: cannot be read: jane may not get roles") {
		t.Errorf("of a refusal: %v", err)
	}
}

// An undo that was killed has deleted an object. Dependent objects are deleted while the next undo is confirmed, which
// does not make its plan outdated.
func TestWhatIsGoingIsNoOtherPlan(t *testing.T) {
	confirmed := steps.Change{Items: []steps.Item{{Verb: steps.Delete, What: "ResourceSlice a/b", Hash: "1"}}}
	now := steps.Change{Items: []steps.Item{{Verb: steps.Delete, What: "VirtualNode a/b", Hash: "2", Terminating: true}}}
	if !sameChange(confirmed, now) {
		t.Error("waiting for what is being deleted changes nothing")
	}
	now.Items[0].Terminating = false
	if sameChange(confirmed, now) {
		t.Error("deleting what was not confirmed is another plan")
	}
}

// A pending action is not a change: diff does not report a difference for it.
func TestWhatIsNotKnownIsNoChange(t *testing.T) {
	row := steps.Change{Items: []steps.Item{{Verb: steps.Create, What: "cluster in Renku"}}}
	p := &Plan{Actions: []Planned{{Action: "register", Change: row, Pending: "nobody is signed in"}, {Action: "role"}}}
	if p.Empty() || p.Changes() {
		t.Errorf("of what is not known: empty %v, changes %v", p.Empty(), p.Changes())
	}
	p.Actions[1].Change = row
	if !p.Changes() {
		t.Error("a creation that is known is a change")
	}
}
