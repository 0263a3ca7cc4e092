package action

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/chart"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/inventory"
)

var (
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	secretsAt  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

type part struct {
	found
	item steps.Item
}

// PlanUndo finds the releases with this action's ownership label and reads their objects from the inventory. It renders
// nothing and requires no chart.
func (c Chart) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	list, blind, err := c.installed(ctx, env)
	if err != nil {
		return steps.Change{}, err
	}
	var ch steps.Change
	var along []string // including older revisions, because the namespace can belong to this link
	if blind {
		ch.Items = append(
			ch.Items,
			steps.Item{
				Verb: steps.Leave, What: "Helm releases",
				Note: "you cannot list Secrets in all namespaces: searched only the namespaces in the current answers",
			},
		)
	}
	for _, in := range list {
		ch.Items = append(ch.Items, in.item)
		ch.Permissions = append(ch.Permissions, undoRight(in.item, in.found)...)
		for _, p := range in.parts {
			ch.Items = append(ch.Items, p.item)
			ch.Permissions = append(ch.Permissions, undoRight(p.item, p.found)...)
		}
		ch.Items = append(ch.Items, in.hooks...)
		if in.item.Verb != steps.Delete {
			continue
		}
		all, err := chart.Revisions(ctx, env.Cluster, in.Release.Namespace, in.Release.Name)
		if err != nil {
			return ch, err
		}
		for _, m := range all {
			along = append(along, "Secret "+m.Namespace+"/"+m.Name)
		}
	}
	ch.Along = map[steps.Side][]string{env.Side: along}
	crds, err := definitions(ctx, env)
	if err != nil {
		return ch, err
	}
	rest, err := onlyInInventory(ctx, env, list, crds)
	for _, p := range append(rest, crds...) {
		ch.Items = append(ch.Items, p.item)
		ch.Permissions = append(ch.Permissions, undoRight(p.item, p.found)...)
	}
	return ch, err
}

// onlyInInventory returns the parts that are in the inventory but not in the stored releases. A user who can write a
// release's Secret can remove parts from it. While an undo keeps one of the releases, onlyInInventory returns nothing.
func onlyInInventory(ctx context.Context, env steps.Env, list []installed, known []part) ([]part, error) {
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, p := range known {
		all = append(all, p.found)
	}
	for _, in := range list {
		if in.item.Verb != steps.Delete {
			return nil, nil
		}
		for _, p := range in.parts {
			all = append(all, p.found)
		}
	}
	more, err := unmarkedIn(ctx, env, inv, all)
	var out []part
	for _, f := range slices.Backward(more) {
		item, err := planUndo(ctx, env, f)
		if err != nil {
			return nil, err
		}
		out = append(out, part{f, item})
	}
	return out, err
}

func undoRight(item steps.Item, f found) []permission.Rule {
	switch item.Verb {
	case steps.Delete:
		rights := []permission.Rule{
			{Verb: "delete", Group: f.gvr.Group, Resource: f.gvr.Resource, Namespace: f.Namespace, Name: f.Name},
		}
		if f.gvr == crdsAt { // whether the CRD still has objects is checked separately
			plural, group, _ := strings.Cut(f.Name, ".")
			rights = append(rights, permission.Rule{Verb: "list", Group: group, Resource: plural})
		}
		return rights
	case steps.Release:
		return []permission.Rule{
			{Verb: "patch", Group: f.gvr.Group, Resource: f.gvr.Resource, Namespace: f.Namespace, Name: f.Name},
		}
	}
	return nil
}

// Undo uninstalls the releases that this link installed. Releases that this link shares stay installed for the other
// links.
func (c Chart) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	list, _, err := c.installed(ctx, env)
	if err != nil {
		return err
	}
	for _, in := range list {
		switch in.item.Verb {
		case steps.Delete:
			err = c.uninstall(ctx, env, in, say)
		case steps.Release:
			err = in.release(ctx, env, say)
		default:
			say.Say("%s is kept: %s", in.item.What, in.item.Note)
		}
		if err != nil {
			return err
		}
	}
	rest, err := onlyInInventory(ctx, env, onlyLeft(list), nil)
	if err != nil {
		return err
	}
	for _, p := range rest {
		if p.gvr == crdsAt {
			continue
		}
		if err := takeBack(ctx, env, p, say); err != nil {
			return err
		}
	}
	crds, err := definitions(ctx, env) // now that their objects are deleted
	if err != nil {
		return err
	}
	rest, err = onlyInInventory(ctx, env, onlyLeft(list), crds) // the CRDs without ownership label
	if err != nil {
		return err
	}
	for _, p := range append(crds, rest...) {
		if err := takeBack(ctx, env, p, say); err != nil {
			return err
		}
	}
	return nil
}

func (c Chart) uninstall(ctx context.Context, env steps.Env, in installed, say steps.Progress) error {
	for _, h := range in.hooks {
		say.Say("%s is kept: %s", h.What, h.Note)
	}
	req := chart.Request{
		Name: in.Release.Name, Namespace: in.Release.Namespace, Manager: env.Manager(), Remove: remover(env, say),
	}
	left, err := chart.Uninstall(ctx, env.Cluster, req)
	for _, l := range left {
		say.Say("kept: %s", l)
	}
	if err == nil {
		say.Did(steps.Delete, in.item.What, "")
	}
	return err
}

// release hands a shared release over to another link. It processes the parts first, so that the next run still finds a
// release whose handover was interrupted.
func (in installed) release(ctx context.Context, env steps.Env, say steps.Progress) error {
	for _, p := range in.parts {
		if err := takeBack(ctx, env, p, say); err != nil {
			return err
		}
	}
	if err := release(ctx, env, in.found); err != nil {
		return err
	}
	say.Did(steps.Release, in.item.What, "")
	return nil
}

func onlyLeft(list []installed) []installed {
	return slices.DeleteFunc(slices.Clone(list), func(in installed) bool { return in.item.Verb == steps.Delete })
}

func takeBack(ctx context.Context, env steps.Env, p part, say steps.Progress) error {
	var err error
	switch p.item.Verb {
	case steps.Delete:
		err = deleteObject(ctx, env, p.object(), say)
	case steps.Release:
		err = release(ctx, env, p.found)
	default:
		say.Say("%s is kept: %s", p.item.What, p.item.Note)
		return nil
	}
	if err == nil {
		say.Did(p.item.Verb, p.item.What, "")
	}
	return err
}

// remover returns the function that deletes one object of a release. It applies the same rules as for any other object
// with the ownership label.
func remover(env steps.Env, say steps.Progress) func(context.Context, *unstructured.Unstructured) (string, error) {
	return func(ctx context.Context, live *unstructured.Unstructured) (string, error) {
		p, err := undoPart(ctx, env, live)
		if err != nil || p.item.Verb == steps.Leave {
			return p.item.Note, err
		}
		return "", takeBack(ctx, env, p, say)
	}
}

func undoPart(ctx context.Context, env steps.Env, live *unstructured.Unstructured) (part, error) {
	gvr, _, err := env.Cluster.Resource(ctx, live.GroupVersionKind())
	if err != nil {
		return part{}, err
	}
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return part{}, err
	}
	p := part{found: findIn(inv, env.Action, inventory.MetadataOf(live), live.GroupVersionKind(), gvr)}
	if p.entry == nil && live.GetLabels()[steps.LinkLabel(env.Link)] == "" {
		p.item = steps.Item{Verb: steps.Leave, What: inventory.Describe(live), Note: "it does not have this link's label"}
		return p, nil
	}
	p.item, err = planUndo(ctx, env, p.found)
	return p, err
}
