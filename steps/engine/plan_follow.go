package engine

import (
	"context"
	"maps"
	"slices"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/inventory"
)

// following returns the actions outside a scope that must run again because of the actions in the scope: this link has
// run them before, they depend on a check that an action in the scope fixes, and they cannot be planned before that. An
// example is the copy of a token, if the scope creates the token again. The result is in apply order.
func (s *Session) following(ctx context.Context, o Scope) []Planned {
	var out []Planned
	for _, j := range s.jobs(ctx, Scope{Side: o.Side}) {
		if o.covers(j.step, j.action, j.side) || !s.dependsOn(j, o.Actions) || !s.ran(ctx, j) {
			continue
		}
		pl, ok, err := s.planJob(ctx, j)
		if err == nil && ok && pl.Pending != "" && !pl.Refused && !pl.handed && pl.ending == "" {
			pl.follows = true
			pl.Change.Permissions = append(pl.Change.Permissions, s.lastPermissions(ctx, j)...)
			out = append(out, pl)
		}
	}
	return out
}

// dependsOn reports whether an action needs a check, directly or indirectly, that one of the given actions fixes.
func (s *Session) dependsOn(j job, actions []string) bool {
	for _, need := range s.guide.NeedsOf(j.action.Name, j.side) {
		cells := append(slices.Collect(maps.Keys(s.guide.DependsOn(need))), need)
		if slices.ContainsFunc(cells, func(c steps.Cell) bool {
			check, _ := s.guide.Check(c.Check)
			by, _ := s.guide.FixingAction(check, c.Side)
			return by != nil && slices.Contains(actions, by.Name)
		}) {
			return true
		}
	}
	return false
}

// ran reports whether the inventory shows that this link has run an action.
func (s *Session) ran(ctx context.Context, j job) bool {
	env := s.env(ctx, j.side, &usage{})
	if env.Cluster == nil {
		return false
	}
	inv, err := inventory.Of(ctx, env)
	return err == nil && (len(inv.Actions[j.action.Name]) > 0 || inv.Notes[j.action.Name] != "")
}

// lastPermissions returns the permissions required to write the objects that an action of this link wrote before. An
// action that can't be planned yet will write the same objects.
func (s *Session) lastPermissions(ctx context.Context, j job) []permission.Rule {
	env := s.env(ctx, j.side, &usage{})
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return nil // reported by the plan's own reads
	}
	out := inventory.Permissions(env)
	for _, e := range inv.Actions[j.action.Name] {
		if e.GVK() == inventory.ReleaseKind {
			continue
		}
		if kind, _, err := env.Cluster.Resource(ctx, e.GVK()); err == nil {
			out = append(out, action.RightsTo(e.Object(), kind)...)
		}
	}
	return out
}
