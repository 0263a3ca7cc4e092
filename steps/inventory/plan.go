package inventory

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster/permission"
	"carrick/steps"
)

// Permissions returns the permissions required to write the inventory, including notes.
func Permissions(env steps.Env) []permission.Rule {
	var out []permission.Rule
	for _, verb := range []string{"get", "create", "patch"} {
		r := permission.Rule{Verb: verb, Group: rbacv1.GroupName, Resource: "clusterroles"}
		if verb != "create" {
			r.Name = Prefix + env.Link
		}
		out = append(out, r)
	}
	return out
}

// Plan adds the change to the inventory itself to an action's plan. Either the inventory is created, or it gets new
// entries. New entries are for objects that an earlier version of carrick wrote and that the action keeps unchanged.
func Plan(ctx context.Context, env steps.Env, c *steps.Change) error {
	if env.Cluster == nil || !slices.ContainsFunc(c.Items, func(it steps.Item) bool { return it.Entry != nil }) {
		return nil
	}
	inv, err := Of(ctx, env)
	if err != nil {
		return err
	}
	c.Permissions = append(c.Permissions, Permissions(env)...)
	if inv.Unread != nil {
		return nil // reported later with all other missing permissions
	}
	var left []steps.Item
	changes := false
	for _, it := range c.Items {
		if it.Verb.Changes() {
			changes = true
		} else {
			left = append(left, it)
		}
	}
	if lacks := inv.Lacks(env.Action, left); len(lacks) > 0 {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Update, What: Name(env.Link), Hash: steps.Fingerprint(lacks),
			Note: "adds what an earlier version wrote to the inventory of this link, which undo relies on: " +
				strings.Join(Names(lacks), ", "),
		})
	}
	if changes && inv.UID == "" {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Create, What: Name(env.Link), Hash: steps.Fingerprint(env.Link), Creates: true,
			Note: "the inventory of this link, which undo relies on: the objects that the link creates and the fields that " +
				"it takes over",
		})
	}
	return nil
}

// Names describes entries as plans show them. Each line has the object, whether it existed before, and the values that
// undo restores.
func Names(list []steps.Entry) []string {
	var out []string
	for _, e := range list {
		text := Describe(e.Object())
		if !e.Created {
			text += " (existed before)"
		}
		if paths := FieldPaths("", e.Before); len(paths) > 0 {
			text += " (restores " + strings.Join(paths, ", ") + ")"
		}
		out = append(out, text)
	}
	return out
}

// Planned is the plan of one action.
type Planned struct {
	Action string
	Items  []steps.Item
}

// EnterAll adds the objects that an action is about to write to the inventory. It also adds the known objects of later
// actions on that side, so that most plans require only one write of the inventory.
func EnterAll(ctx context.Context, env steps.Env, items []steps.Item, later []Planned, say steps.Progress) error {
	if env.Cluster == nil || !slices.ContainsFunc(items, func(it steps.Item) bool { return it.Entry != nil }) {
		return nil
	}
	inv, err := Of(ctx, env)
	if err != nil {
		return err
	}
	lacks := inv.Lacks(env.Action, items)
	if len(lacks) == 0 || inv.Unread != nil {
		return inv.Unread
	}
	inv.put(env.Action, lacks)
	names := []string{env.Action}
	for _, a := range later {
		if lacks := inv.Lacks(a.Action, a.Items); len(lacks) > 0 {
			inv.put(a.Action, lacks)
			names = append(names, a.Action)
		}
	}
	return inv.Write(ctx, env, say, names...)
}
