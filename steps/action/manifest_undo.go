package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/inventory"
)

// saysAfter is how long an undo waits for a deletion before it reports that it is waiting.
const saysAfter = 5 * time.Second

// PlanUndo finds the inventory entries of this action. It also finds objects of the asset's kinds with this action's
// ownership label. It renders nothing, so it works after answers have changed.
func (m Manifest) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	found, blind, err := m.marked(ctx, env)
	if err != nil {
		return steps.Change{}, err
	}
	var c steps.Change
	for _, resource := range blind {
		c.Items = append(
			c.Items,
			steps.Item{
				Verb: steps.Leave, What: resource,
				Note: "you cannot list them in all namespaces: searched only the namespaces in the current answers",
			},
		)
	}
	for _, f := range found {
		item, err := planUndo(ctx, env, f)
		if err != nil {
			return c, err
		}
		c.Items = append(c.Items, item)
		verb := "delete"
		switch item.Verb {
		case steps.Leave:
			continue
		case steps.Release:
			verb = "patch"
		}
		c.Permissions = append(
			c.Permissions,
			permission.Rule{Verb: verb, Group: f.gvr.Group, Resource: f.gvr.Resource, Namespace: f.Namespace, Name: f.Name},
		)
	}
	return c, nil
}

// Undo deletes the objects that the link created. In objects that it shares, it only removes what the link wrote.
func (m Manifest) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	found, _, err := m.marked(ctx, env)
	if err != nil {
		return err
	}
	for i := len(found) - 1; i >= 0; i-- { // reverse order of the asset's kinds
		f := found[i]
		item, err := planUndo(ctx, env, f)
		if err != nil {
			return err
		}
		switch item.Verb {
		case steps.Leave:
			say.Say("%s is kept: %s", item.What, item.Note)
			continue
		case steps.Delete:
			err = deleteObject(ctx, env, f.object(), say)
		case steps.Release:
			err = release(ctx, env, f)
		}
		if err != nil {
			return err
		}
		say.Did(item.Verb, item.What, "")
	}
	return nil
}

// found is an object that has this action's ownership label or an inventory entry.
type found struct {
	metav1.PartialObjectMetadata
	gvk   schema.GroupVersionKind
	gvr   schema.GroupVersionResource
	entry *steps.Entry // nil if the inventory has no entry
}

func findIn(
	inv *inventory.Inventory, action string, m metav1.PartialObjectMetadata, gvk schema.GroupVersionKind,
	gvr schema.GroupVersionResource,
) found {
	f := found{m, gvk, gvr, inv.Find(action, steps.EntryOf(gvk, m.Namespace, m.Name))}
	if f.entry != nil && f.entry.UID != "" && f.entry.UID != m.UID {
		f.entry = nil // the entry belongs to another object with the same name
	}
	return f
}

func (f found) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(f.gvk)
	o.SetNamespace(f.Namespace)
	o.SetName(f.Name)
	o.SetUID(f.UID)
	return o
}

// marked finds the objects with this action's ownership label and their inventory entries. blind lists the resources
// that could not be listed in all namespaces.
func (m Manifest) marked(ctx context.Context, env steps.Env) (out []found, blind []string, err error) {
	if env.Cluster == nil {
		return nil, nil, fmt.Errorf("asset %s: the %s is not a cluster", m.File, env.SideName())
	}
	inv, err := inventory.Readable(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	docs, err := Documents(env.Assets, m.File)
	if err != nil {
		return nil, nil, err
	}
	version := ""
	if m.Version != nil {
		version, err = m.Version(ctx, env)
		if errors.As(err, new(*steps.AbsentError)) {
			return nil, nil, nil // the kind is not served
		}
		if err != nil {
			return nil, nil, err
		}
	}
	seen := map[schema.GroupVersionKind]bool{}
	for _, doc := range docs {
		gvk := (&unstructured.Unstructured{Object: doc}).GroupVersionKind()
		gvk.Version = cmp.Or(version, gvk.Version)
		if seen[gvk] {
			continue
		}
		seen[gvk] = true
		gvr, namespaced, err := env.Cluster.Resource(ctx, gvk)
		if errors.Is(err, failure.ErrNotServed) {
			continue // the kind is not served
		}
		if err != nil {
			return nil, nil, err
		}
		list, everywhere, err := m.find(ctx, env, gvr, namespaced)
		if err != nil {
			return nil, nil, fmt.Errorf("find %s with this link's label: %w", gvr.Resource, err)
		}
		if !everywhere {
			blind = append(blind, gvr.GroupResource().String())
		}
		for _, o := range list {
			out = append(out, findIn(inv, env.Action, o, gvk, gvr))
		}
	}
	unmarked, err := unmarkedIn(ctx, env, inv, out)
	return append(out, unmarked...), blind, err
}

// unmarkedIn returns the objects in the inventory of the current action that are not in known.
func unmarkedIn(ctx context.Context, env steps.Env, inv *inventory.Inventory, known []found) ([]found, error) {
	var out []found
	for _, e := range inv.Actions[env.Action] {
		if e.GVK() == inventory.ReleaseKind || e.UID == "" ||
			slices.ContainsFunc(known, func(f found) bool { return f.UID == e.UID }) {
			continue
		}
		live, err := env.Cluster.Fetch(ctx, e.Object())
		if apierrors.IsNotFound(err) || errors.Is(err, failure.ErrNotServed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		gvr, _, err := env.Cluster.Resource(ctx, e.GVK())
		if err != nil {
			return nil, err
		}
		if live.GetUID() == e.UID {
			out = append(out, findIn(inv, env.Action, inventory.MetadataOf(live), e.GVK(), gvr))
		}
	}
	return out, nil
}

// find lists objects in all namespaces. If that is forbidden, it lists objects only in the namespaces in the answers,
// and it reads cluster-scoped objects by the names in the answers.
func (m Manifest) find(
	ctx context.Context, env steps.Env, gvr schema.GroupVersionResource, namespaced bool,
) (list []metav1.PartialObjectMetadata, everywhere bool, err error) {
	sel := cluster.Selector{Labels: steps.LinkLabel(env.Link) + "=" + env.Action}
	list, err = env.Cluster.Find(ctx, gvr, "", sel)
	if err == nil || !apierrors.IsForbidden(err) {
		return list, true, err
	}
	objs, renderErr := m.Objects(ctx, env)
	if renderErr != nil {
		return nil, false, err
	}
	spaces := map[string]bool{}
	for _, o := range objs {
		r, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind())
		if err != nil || r != gvr || (namespaced && spaces[o.GetNamespace()]) {
			continue
		}
		spaces[o.GetNamespace()] = true
		var part []metav1.PartialObjectMetadata
		if namespaced {
			part, err = env.Cluster.Find(ctx, gvr, o.GetNamespace(), sel)
		} else {
			part, err = named(ctx, env, o)
		}
		if err != nil {
			return nil, false, err
		}
		list = append(list, part...)
	}
	return list, false, nil
}

// named returns the named object if it has this action's ownership label.
func named(ctx context.Context, env steps.Env, o *unstructured.Unstructured) ([]metav1.PartialObjectMetadata, error) {
	live, err := env.Cluster.Fetch(ctx, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case live.GetLabels()[steps.LinkLabel(env.Link)] != env.Action:
		return nil, nil
	}
	return []metav1.PartialObjectMetadata{inventory.MetadataOf(live)}, nil
}

// planUndo plans the undo of one object. The inventory decides, not the ownership label.
func planUndo(ctx context.Context, env steps.Env, f found) (steps.Item, error) {
	item := steps.Item{Verb: steps.Delete, What: inventory.Describe(f.object()), Entry: f.entry}
	if f.entry != nil && f.entry.GVK() == inventory.ReleaseKind {
		item.What = releaseAt(f.Namespace, f.entry.Name)
	}
	asked := slices.Contains(env.Runtime.Found, item.What)
	ours, created := inventory.Wrote(env.Link, f.ManagedFields), f.Annotations[inventory.CreatedByAnnotation] == env.Link
	if f.entry != nil {
		ours, created = ours || f.entry.UID != "", f.entry.Created && (created || f.entry.UID != "")
	}
	others, claims, err := inventory.UsersOf(ctx, env, &f.PartialObjectMetadata)
	if err != nil {
		return item, err
	}
	switch {
	case !ours:
		item.Verb, item.Note = steps.Leave, "it has this link's label, but this link did not write it: possibly a copy"
	case f.entry == nil && !asked:
		item.Verb, item.Unentered = steps.Leave, true
		item.Note = fmt.Sprintf(
			"it has this link's label, which others can forge, but is not in the inventory. If an earlier version of carrick "+
				"wrote it: carrick apply %[1]s adds it. To undo it by its label: carrick undo %[1]s --found %[2]s",
			env.LinkFile(), steps.Quoted(item.What),
		)
	case !created && !inventory.Wrote(env.Link, f.ManagedFields):
		item.Verb, item.Note, item.Entry = steps.Leave, "it no longer contains anything of this link", nil
	case len(claims) > 0 && !asked:
		item.Verb, item.Unentered = steps.Leave, true
		item.Note = fmt.Sprintf(
			"it has the label of link %[1]s, which has no inventory on this cluster. If that link uses it, run carrick apply "+
				"for that link first. If not, the label was forged: carrick undo %[2]s --found %[3]s",
			strings.Join(claims, ", "), env.LinkFile(), steps.Quoted(item.What),
		)
	case !created:
		item.Verb, item.Note = steps.Release, "it existed before this link"
		if len(others) == 0 {
			item.Note += returns(f)
			if item.Diff, err = showBack(ctx, env, f); err != nil {
				return item, fmt.Errorf("preview the restored values of %s: %w", item.What, err)
			}
		}
	case len(others) > 0:
		item.Verb, item.Note = steps.Release, "it is also used by link "+strings.Join(slices.Sorted(maps.Keys(others)), ", ")
	default:
		why, err := occupied(ctx, env, f)
		if err != nil {
			return item, err
		}
		if why != "" {
			item.Verb, item.Note = steps.Leave, why
		}
	}
	parts := []any{item.Verb, item.What, f.UID}
	if item.Verb == steps.Release && slices.Contains(env.Runtime.Along, item.What) {
		item.Note += "; deleting an object above also deletes it"
		if len(others) > 0 {
			item.Note += ": run carrick apply for link " + strings.Join(slices.Sorted(maps.Keys(others)), ", ") + " afterwards"
		}
	}
	if item.Verb == steps.Release {
		parts = append(parts, f.before())
	}
	item.Hash = steps.Fingerprint(parts...)
	return item, nil
}

// deleteObject deletes the object with this UID and waits until it is gone.
func deleteObject(ctx context.Context, env steps.Env, obj *unstructured.Unstructured, say steps.Progress) error {
	gvr, _, err := env.Cluster.Resource(ctx, obj.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("delete %s: %w", inventory.Describe(obj), err)
	}
	if err := env.Cluster.Delete(ctx, gvr, obj.GetNamespace(), obj.GetName(), obj.GetUID()); err != nil {
		return fmt.Errorf("delete %s: %w", inventory.Describe(obj), err)
	}
	gone := make(chan error, 1)
	go func() { gone <- env.Cluster.Gone(ctx, gvr, obj.GetNamespace(), obj.GetName(), obj.GetUID()) }()
	select {
	case err := <-gone:
		return err
	case <-time.After(saysAfter):
	}
	say.Say("waiting until %s is gone", inventory.Describe(obj))
	return <-gone
}

// occupied returns why a namespace or a CRD must be kept, or "". A namespace or a CRD is kept if it contains objects
// that do not belong to this link. For all other kinds it returns "".
func occupied(ctx context.Context, env steps.Env, f found) (string, error) {
	var rest []string
	var err error
	switch f.gvk.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		rest, err = tenants(ctx, env, f.Name)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		rest, err = instances(ctx, env, f.Name)
	}
	if err != nil {
		return "", fmt.Errorf("list the content of %s: %w", inventory.Describe(f.object()), err)
	}
	if len(rest) == 0 {
		return "", nil
	}
	sort.Strings(rest)
	more := ""
	if n := len(rest) - 3; n > 0 {
		rest, more = rest[:3], fmt.Sprintf(" and %d more", n)
	}
	return "it contains objects that are not this link's: " + strings.Join(rest, ", ") + more, nil
}
