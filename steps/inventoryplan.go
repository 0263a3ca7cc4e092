package steps

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster"
)

// InventoryRights are the permissions that it takes to keep the inventory, and with it notes.
func InventoryRights(env Env) []cluster.Right {
	var out []cluster.Right
	for _, verb := range []string{"get", "create", "patch"} {
		r := cluster.Right{Verb: verb, Group: rbacv1.GroupName, Resource: "clusterroles"}
		if verb != "create" {
			r.Name = inventoryPrefix + env.Link
		}
		out = append(out, r)
	}
	return out
}

// planInventory adds to what an action would change that the inventory is kept, where that is news: it is created, or it
// lacks what the action leaves as it is, because an earlier version of carrick wrote that.
func planInventory(ctx context.Context, env Env, c *Change) error {
	if env.Cluster == nil || !slices.ContainsFunc(c.Items, func(it Item) bool { return it.entry != nil }) {
		return nil
	}
	inv, err := inventoryIn(ctx, env)
	if err != nil {
		return err
	}
	c.Rights = append(c.Rights, InventoryRights(env)...)
	if inv.unread != nil {
		return nil // told with all other missing permissions
	}
	var left []Item
	changes := false
	for _, it := range c.Items {
		if it.Verb.Changes() {
			changes = true
		} else {
			left = append(left, it)
		}
	}
	if lacks := inv.lacks(env.Action, left); len(lacks) > 0 {
		c.Items = append(c.Items, Item{
			Verb: Update, What: inventoryName(env.Link), Hash: fingerprint(lacks),
			Note: "the inventory of this link lacks what an earlier version wrote; undo will go by it: " + strings.Join(entered(lacks), ", "),
		})
	}
	if changes && inv.uid == "" {
		c.Items = append(c.Items, Item{
			Verb: Create, What: inventoryName(env.Link), Hash: fingerprint(env.Link), creates: true,
			Note: "the inventory of this link: what it creates and what it takes over; undo goes by it",
		})
	}
	return nil
}

// entered names entries as the plan does: what undo would do with each, and which values it would put back.
func entered(list []entry) []string {
	var out []string
	for _, e := range list {
		text := describe(e.object())
		if !e.Created {
			text += " (existed before)"
		}
		if paths := fieldPaths("", e.Before); len(paths) > 0 {
			text += " (puts back " + strings.Join(paths, ", ") + ")"
		}
		out = append(out, text)
	}
	return out
}

// ToEnter is what an action is about to write.
type ToEnter struct {
	Action string
	Items  []Item
}

// enterPlanned enters into the inventory what an action is about to write, and with it what is known of the actions that
// come after it on that side: that is one write for most of a plan.
func enterPlanned(ctx context.Context, env Env, items []Item, later []ToEnter, say Progress) error {
	if env.Cluster == nil || !slices.ContainsFunc(items, func(it Item) bool { return it.entry != nil }) {
		return nil
	}
	inv, err := inventoryIn(ctx, env)
	if err != nil {
		return err
	}
	lacks := inv.lacks(env.Action, items)
	if len(lacks) == 0 || inv.unread != nil {
		return inv.unread
	}
	inv.put(env.Action, lacks)
	names := []string{env.Action}
	for _, a := range later {
		if lacks := inv.lacks(a.Action, a.Items); len(lacks) > 0 {
			inv.put(a.Action, lacks)
			names = append(names, a.Action)
		}
	}
	return inv.write(ctx, env, say, names...)
}
