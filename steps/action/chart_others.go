package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/diff"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/inventory"
	"carrick/steps/linkfile"
)

// asHelm returns a request that changes another user's release as Helm itself would. It sets no ownership labels and
// uses Helm's own field manager.
func asHelm(r chart.Request) chart.Request {
	r.Labels, r.Annotations, r.Manager = nil, nil, chart.HelmManager
	return r
}

// planTheirs plans one object of a release that another user continues to manage with Helm.
func planTheirs(ctx context.Context, env steps.Env, o *unstructured.Unstructured, ch *steps.Change) error {
	item := steps.Item{Verb: steps.Update, What: inventory.Describe(o)}
	live, after, err := chart.Request{Manager: chart.HelmManager, TakeOver: true}.DryRun(ctx, env.Cluster, o)
	if err != nil {
		return fmt.Errorf("change %s: %w", item.What, err)
	}
	item.Diff = diff.Objects(live, after)
	switch {
	case live == nil:
		item.Verb = steps.Create
	case item.Diff == "":
		item.Verb, item.Note = steps.Leave, "is up to date"
	}
	item.Hash = steps.Fingerprint(item.Verb, item.What)
	ch.Items = append(ch.Items, item)
	gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind())
	if errors.Is(err, failure.ErrNotServed) {
		return nil // the chart installs this kind and grants the permission for it
	}
	ch.Permissions = append(ch.Permissions, RightsTo(o, gvr)...)
	return err
}

// writeShared writes an object of a shared release. It ignores a conflict if only the links that share the release own
// the field. The user confirmed taking over the release as a whole.
func writeShared(
	ctx context.Context, env steps.Env, others map[string]string, o *unstructured.Unstructured, say steps.Progress,
) error {
	p, err := planObject(ctx, env, o)
	if err != nil {
		return err
	}
	foreign := slices.ContainsFunc(p.Conflicts, func(c failure.Conflict) bool {
		return !slices.ContainsFunc(
			slices.Sorted(maps.Keys(others)),
			func(link string) bool { return c.Manager == steps.FieldManager(link, others[link]) },
		)
	})
	if foreign || len(p.Conflicts) == 0 {
		err = doObject(ctx, env, o, say)
	} else if err = inventory.EnterOne(ctx, env, say, p.Verb, p.Entry); err == nil {
		if _, err = env.Cluster.Apply(ctx, p.want, cluster.ApplyOptions{Manager: env.Manager(), Force: true}); err == nil {
			say.Did(p.Verb, p.What, p.Hash)
		}
	}
	if err != nil {
		return err
	}
	return writeForOthers(ctx, env, others, o)
}

// writeForOthers also writes an object of a shared release on behalf of the other links. The object then belongs to
// these links too, so an undo of this link keeps it.
func writeForOthers(ctx context.Context, env steps.Env, others map[string]string, o *unstructured.Unstructured) error {
	for _, link := range slices.Sorted(maps.Keys(others)) {
		live, err := env.Cluster.Fetch(ctx, o)
		if err != nil {
			return err
		}
		as := inventory.EnvOf(env, link, others[link])
		theirs := o.DeepCopy()
		inventory.SetOwnership(as, theirs, live)
		if err := enterShared(ctx, as, o, live); err != nil {
			return err
		}
		opts := cluster.ApplyOptions{Manager: steps.FieldManager(link, others[link]), Force: true}
		if _, err := env.Cluster.Apply(ctx, theirs, opts); err != nil {
			return fmt.Errorf("change %s for link %s: %w", inventory.Describe(o), link, err)
		}
	}
	return nil
}

// enterShared adds an object of a shared release to another link's inventory. If that link has no inventory, because an
// earlier version of carrick applied it, enterShared does nothing.
func enterShared(ctx context.Context, as steps.Env, o, live *unstructured.Unstructured) error {
	inv, err := inventory.Of(ctx, as)
	if err != nil || inv.Unread != nil || inv.UID == "" {
		return err
	}
	e := inv.Next(as, o, live)
	if inventory.IsRecord(o.GetKind(), o.GetName()) { // the release has its own entry
		if e = inv.Find(as.Action, steps.EntryOf(inventory.ReleaseKind, o.GetNamespace(), o.GetLabels()["name"])); e == nil {
			return nil
		}
		now := *e
		e, now.UID = &now, live.GetUID()
		if now.Content, err = chart.ContentOf(o); err != nil {
			return err
		}
	}
	return inv.Enter(ctx, as, nil, inv.Lacks(as.Action, []steps.Item{{Verb: steps.Update, Entry: e}}))
}

func releaseEntry(r *chart.Release) steps.Entry {
	return steps.EntryOf(inventory.ReleaseKind, r.Namespace, r.Name)
}

// sharers returns the other links whose inventories contain the release, and their actions. Other users can write the
// release's labels, so the labels only select which inventories to read. claims lists the links that are in the labels
// but have no inventory.
func sharers(
	ctx context.Context, env steps.Env, r *chart.Release,
) (others map[string]string, claims []string, err error) {
	others = map[string]string{}
	for _, link := range slices.Sorted(maps.Keys(inventory.OtherLinks(r.Labels, env.Link))) {
		if linkfile.CheckName(link) != nil {
			continue
		}
		inv, err := inventory.Readable(ctx, inventory.EnvOf(env, link, env.Action))
		if err != nil {
			return nil, nil, fmt.Errorf(
				"%s has the label of link %s; carrick cannot find out from the inventory %s whether that link uses the release: %w",
				releaseAt(r.Namespace, r.Name), link, inventory.Name(link), err,
			)
		}
		if inv.UID == "" {
			claims = append(claims, link)
		}
		for _, action := range slices.Sorted(maps.Keys(inv.Actions)) {
			if inv.Find(action, releaseEntry(r)) != nil {
				others[link] = action
			}
		}
	}
	return others, claims, nil
}

// matchesInventory reports whether the content of a release matches the inventory of this link or of another link that
// shares the release. If the release has no ownership label and no sharers, it also returns true. carrick then leaves
// the release unchanged, so its content does not matter and its chart need not be fetched.
func matchesInventory(ctx context.Context, env steps.Env, r *chart.Release, marked bool) (bool, error) {
	users, _, err := sharers(ctx, env, r)
	if err != nil || (!marked && len(users) == 0) {
		return err == nil, err
	}
	users[env.Link] = env.Action
	for _, link := range slices.Sorted(maps.Keys(users)) {
		inv, err := inventory.OfLink(ctx, env, link)
		if err != nil {
			return false, err
		}
		if e := inv.Find(users[link], releaseEntry(r)); e != nil && e.Content == r.Content() {
			return true, nil
		}
	}
	return false, nil
}

// stays returns why an upgrade keeps an object of the previous revision, or "" if the upgrade deletes the object. Any
// user who can write the release's Secret can add any object to it. An upgrade therefore deletes only objects that are
// in the inventories of the sharing links.
func stays(
	ctx context.Context, env steps.Env, others map[string]string, live *unstructured.Unstructured,
) (string, error) {
	meta, created := inventory.MetadataOf(live), false
	for _, link := range append(slices.Sorted(maps.Keys(others)), env.Link) {
		inv, err := inventory.OfLink(ctx, env, link)
		if err != nil {
			return "", err
		}
		created = created || inv.Created(live.GetKind(), &meta)
	}
	if !created {
		return "the inventory of this link does not list it as created", nil
	}
	users, claims, err := inventory.UsersOf(ctx, env, &meta)
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(users, func(link, _ string) bool { return others[link] != "" })
	switch {
	case len(users) > 0:
		return "it is also used by link " + strings.Join(slices.Sorted(maps.Keys(users)), ", "), nil
	case len(claims) > 0:
		const why = "it has the label of link %s, which has no inventory on this cluster; see carrick undo"
		return fmt.Sprintf(why, strings.Join(claims, ", ")), nil
	}
	gvr, _, err := env.Cluster.Resource(ctx, live.GroupVersionKind())
	if err != nil {
		return "", err
	}
	return occupied(ctx, env, found{PartialObjectMetadata: meta, gvk: live.GroupVersionKind(), gvr: gvr})
}

// dropped deletes the objects that a new version of the release no longer contains.
func dropped(
	ctx context.Context, env steps.Env, others map[string]string, live *unstructured.Unstructured, say steps.Progress,
) (string, error) {
	if left, err := stays(ctx, env, others, live); left != "" || err != nil {
		return left, err
	}
	if err := deleteObject(ctx, env, live, say); err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	say.Did(steps.Delete, inventory.Describe(live), "")
	return "", nil
}
