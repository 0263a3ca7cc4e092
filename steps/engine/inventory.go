package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/inventory"
)

// planCompletion makes an otherwise empty plan complete the inventory entries that a killed run has left incomplete.
func (s *Session) planCompletion(ctx context.Context, p *Plan) error {
	if !p.Empty() {
		return nil
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		if !slices.ContainsFunc(a.Change.Items, func(it steps.Item) bool { return it.Entry != nil }) {
			continue
		}
		env := s.env(ctx, a.Side, &usage{})
		inv, err := inventory.Of(ctx, env)
		if err != nil {
			return err
		}
		if inv.Incomplete(a.Action, a.Change.Items) {
			a.Change.Items = append(a.Change.Items, steps.Item{
				Verb: steps.Update, What: inventory.Name(env.Link), Hash: steps.Fingerprint(inv.UID),
				Note: "adds missing UIDs of objects that an interrupted run created to the inventory of this link",
			})
			return nil
		}
	}
	return nil
}

// inventoryOnce removes duplicate items that create the inventory. Each action plans such an item, and inventoryOnce
// keeps only the first one of each side.
func (p *Plan) inventoryOnce() {
	made := map[steps.Side]bool{}
	for i := range p.Actions {
		a := &p.Actions[i]
		a.Change.Items = slices.DeleteFunc(a.Change.Items, func(it steps.Item) bool {
			again := it.Creates && made[a.Side]
			made[a.Side] = made[a.Side] || it.Creates
			return again
		})
	}
}

// completedWithin is how long an interrupted run can take to complete the inventories.
const completedWithin = 10 * time.Second

// completeInventories adds the UIDs of the objects that the actions of a plan have created. It drops the entries of
// objects that were not created. A killed run can leave an entry without a UID. Such an entry is matched by the
// object's name and ownership label. If unwritten is true, completeInventories also drops the entries of existing
// objects that the run has not changed.
func (s *Session) completeInventories(ctx context.Context, p *Plan, unwritten bool, say steps.Progress) error {
	complete := func(e steps.Entry) bool { return e.UID != "" && (e.Created || !unwritten) }
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(len(steps.Sides))*completedWithin)
	defer cancel()
	for _, side := range steps.Sides {
		var names []string
		for _, a := range p.Actions {
			if a.Side == side {
				names = append(names, a.Action)
			}
		}
		if err := s.settleInventory(ctx, side, names, complete, say); err != nil {
			return err
		}
	}
	return nil
}

// settleInventory updates the inventory entries of the given actions, except for those that are complete. It deletes an
// inventory that becomes empty.
func (s *Session) settleInventory(
	ctx context.Context, side steps.Side, actions []string, complete func(steps.Entry) bool, say steps.Progress,
) error {
	if s.ends[side].Cluster == nil || len(actions) == 0 {
		return nil
	}
	env := s.env(ctx, side, &usage{})
	inv, err := inventory.Of(ctx, env)
	if err != nil || inv.Unread != nil || inv.UID == "" {
		return err
	}
	var changed []string
	for _, action := range actions {
		other, err := inv.Settle(ctx, env, action, complete)
		if err != nil {
			return err
		}
		if other {
			changed = append(changed, action)
		}
	}
	last, step := s.guide.Action(actions[len(actions)-1])
	say = s.tagged(Planned{Step: step.Name, Action: last.Name, Side: side}, say)
	if len(inv.Rest(nil)) > 0 || len(inv.Notes) > 0 {
		if len(changed) == 0 {
			return nil
		}
		return inv.Write(ctx, env, say, changed...)
	}
	err = env.Cluster.DeleteVersion(ctx, inventory.ClusterRoles, "", inventory.Prefix+env.Link, inv.UID, inv.Version)
	if apierrors.IsConflict(err) { // another run has changed the inventory
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete the inventory of this link: %w", err)
	}
	say.Did(steps.Delete, inventory.Name(env.Link), "")
	return nil
}

// planForget adds the deletion of the inventory to the plan of an undo if the undo leaves the inventory empty.
func (s *Session) planForget(ctx context.Context, o Scope, p *Plan) error {
	for _, side := range steps.Sides {
		if s.ends[side].Cluster == nil || (o.Side != "" && o.Side != side) {
			continue
		}
		if err := s.planForgetOn(ctx, o, p, side); err != nil && !unreachable(err) {
			return err
		}
	}
	return nil
}

// undoes reports whether a plan deletes or releases the object of an entry.
func (p *Plan) undoes(side steps.Side, e steps.Entry) bool {
	return slices.ContainsFunc(p.Actions, func(a Planned) bool {
		return a.Side == side && slices.ContainsFunc(a.Change.Items, func(it steps.Item) bool {
			return it.Entry != nil && it.Entry.Is(e) && (it.Verb == steps.Delete || it.Verb == steps.Release)
		})
	})
}

// ofScope returns the actions of a scope on one side, in undo order.
func (s *Session) ofScope(ctx context.Context, o Scope, side steps.Side) (jobs []job, names []string) {
	o.Side = side
	for _, j := range s.undoOrder(s.jobs(ctx, o)) {
		if j.side == side {
			jobs, names = append(jobs, j), append(names, j.action.Name)
		}
	}
	return jobs, names
}

// undone returns the actions on a side that an undo covered, including those that had nothing left to undo. If the side
// did not answer or was not selected, it returns none.
func (s *Session) undone(ctx context.Context, p *Plan, side steps.Side) []string {
	away := slices.ContainsFunc(p.Actions, func(a Planned) bool { return a.Side == side && a.Pending != "" })
	if away || (p.scope.Side != "" && p.scope.Side != side) {
		return nil
	}
	_, names := s.ofScope(ctx, p.scope, side)
	return names
}

// deletesBy reports whether a plan deletes something that the action created.
func (p *Plan) deletesBy(side steps.Side, action string) bool {
	return slices.ContainsFunc(p.Actions, func(a Planned) bool {
		return a.Side == side && a.Action == action &&
			slices.ContainsFunc(a.Change.Items, func(it steps.Item) bool { return it.Verb == steps.Delete })
	})
}

func (s *Session) planForgetOn(ctx context.Context, o Scope, p *Plan, side steps.Side) error {
	env := s.env(ctx, side, &usage{})
	inv, err := inventory.Of(ctx, env)
	if err != nil || inv.Unread != nil || inv.UID == "" {
		return err
	}
	jobs, names := s.ofScope(ctx, o, side)
	if len(names) == 0 || len(inv.Rest(names)) > 0 ||
		slices.ContainsFunc(
			slices.Sorted(maps.Keys(inv.Notes)), func(action string) bool { return !p.deletesBy(side, action) },
		) {
		return nil
	}
	for _, action := range names {
		if _, err := inv.Settle(ctx, env, action, nil); err != nil {
			return err
		}
		if slices.ContainsFunc(inv.Actions[action], func(e steps.Entry) bool { return !p.undoes(side, e) }) {
			return nil
		}
	}
	items := []steps.Item{
		{
			Verb: steps.Delete, What: inventory.Name(env.Link), Note: "the inventory of this link: empty after this",
			Hash: steps.Fingerprint(inv.UID),
		},
	}
	rights := []permission.Rule{
		{Verb: "delete", Group: rbacv1.GroupName, Resource: "clusterroles", Name: inventory.Prefix + env.Link},
	}
	for i := len(p.Actions) - 1; i >= 0; i-- {
		if a := &p.Actions[i]; a.Side == side && a.changes() {
			a.Change.Items, a.Change.Permissions = append(a.Change.Items, items...), append(a.Change.Permissions, rights...)
			return nil
		}
	}
	j := jobs[len(jobs)-1]
	p.Actions = append(
		p.Actions,
		Planned{
			Step: j.step.Name, Action: j.action.Name, Title: j.action.Title, Side: side,
			Change: steps.Change{Items: items, Permissions: rights},
		},
	)
	return nil
}
