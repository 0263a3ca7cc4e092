package engine

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/inventory"
)

// SignIn returns all secret answers of the session. It runs the actions that obtain missing secret answers from a
// person.
func (s *Session) SignIn(ctx context.Context, say steps.Progress) (map[string]masked.Value, error) {
	for i := range s.guide.Steps {
		for _, q := range s.guide.Steps[i].Ask {
			if _, is := s.secretAnswers()[q.Key]; is || q.By == "" {
				continue
			}
			p, err := s.Plan(ctx, Scope{Actions: []string{q.By}})
			if err == nil {
				err = s.Apply(ctx, p, steps.ApplyOptions{}, say)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return s.secretAnswers(), nil
}

// Standing counts the checks that an action of the guide fixes, if that action has an undo. holds is the number of
// these checks that pass, and all is the number that ran. If holds is 0, no setup exists.
func (s *Session) Standing(b *Board) (holds, all int) {
	for _, c := range s.guide.Cells() {
		check, _ := s.guide.Check(c.Check)
		act, _ := s.guide.FixingAction(check, c.Side)
		if check.FixedBy == "" || act == nil || !leavesBehind(act.Doer) {
			continue
		}
		r := b.Verdict(c)
		if root, masked := b.Cause(c); masked && b.Verdict(root).Status == steps.Waiting {
			r = b.own(c) // a need of this check is in progress
		}
		if r.Unasked {
			continue
		}
		switch r.Status {
		case steps.Pass, steps.Warn:
			holds++
			all++
		case steps.Skip:
		default:
			all++
		}
	}
	return holds, all
}

func leavesBehind(d steps.Doer) bool {
	call, is := d.(action.Call)
	return !is || call.Revert != nil
}

var namespacesAt = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// MarkedLinks returns the links that have set their ownership label on namespaces of a side. An adoption can continue
// the setup of such a link under its name.
func (s *Session) MarkedLinks(ctx context.Context) []string {
	links := map[string]bool{}
	for _, side := range steps.Sides {
		c := s.ends[side].Cluster
		if c == nil {
			continue
		}
		found, err := c.List(ctx, namespacesAt, "", cluster.Selector{})
		if err != nil {
			continue // such a link is only a hint, so errors don't matter
		}
		for _, ns := range found {
			for name := range inventory.OtherLinks(ns.GetLabels(), "") {
				links[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(links))
}
