package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/chart"
)

// asHelm is a request that changes a release of somebody else's as Helm itself
// would: without marks, under Helm's own field manager.
func asHelm(r chart.Request) chart.Request {
	r.Labels, r.Annotations, r.Manager = nil, nil, chart.HelmManager
	return r
}

// planTheirs is one object of a release that stays somebody else's.
func planTheirs(ctx context.Context, env Env, o *unstructured.Unstructured, ch *Change) error {
	item := Item{Verb: Update, What: describe(o)}
	live, after, err := chart.Request{Manager: chart.HelmManager, TakeOver: true}.DryRun(ctx, env.Cluster, o)
	if err != nil {
		return fmt.Errorf("change %s: %w", item.What, err)
	}
	item.Diff = cluster.Diff(live, after)
	switch {
	case live == nil:
		item.Verb = Create
	case item.Diff == "":
		item.Verb, item.Note = Leave, "is as it should be"
	}
	item.Hash = hash(item.Verb, item.What)
	ch.Items = append(ch.Items, item)
	gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind())
	if errors.Is(err, cluster.ErrNotServed) {
		return nil // it comes with the chart, and so does the right to it
	}
	ch.Rights = append(ch.Rights, rightsTo(o, gvr)...)
	return err
}

// writeShared writes an object of a shared release. What conflicts with the
// other links alone is theirs and this link's alike, and taking it over was
// confirmed for the release as a whole.
func writeShared(ctx context.Context, env Env, others map[string]string, o *unstructured.Unstructured, say Progress) error {
	p, err := planObject(ctx, env, o)
	if err != nil {
		return err
	}
	foreign := slices.ContainsFunc(p.Conflicts, func(c cluster.Conflict) bool {
		return !slices.ContainsFunc(sortedKeys(others), func(link string) bool { return c.Manager == managerOf(link, others[link]) })
	})
	if foreign || len(p.Conflicts) == 0 {
		err = doObject(ctx, env, o, say)
	} else if err = enterOne(ctx, env, say, p.Verb, p.entry); err == nil {
		if _, err = env.Cluster.Apply(ctx, p.want, cluster.ApplyOptions{Manager: env.Manager(), Force: true}); err == nil {
			say.Did(p.Verb, p.What, p.Hash)
		}
	}
	if err != nil {
		return err
	}
	return writeForOthers(ctx, env, others, o)
}

// writeForOthers writes an object of a shared release in the names of the other
// links that have it, too. What a new version changes or brings is then theirs
// as well, and stays when this link goes.
func writeForOthers(ctx context.Context, env Env, others map[string]string, o *unstructured.Unstructured) error {
	for _, link := range sortedKeys(others) {
		live, err := env.Cluster.Fetch(ctx, o)
		if err != nil {
			return err
		}
		as := env.of(link, others[link])
		theirs := o.DeepCopy()
		markObject(as, theirs, live)
		if err := enterShared(ctx, as, o, live); err != nil {
			return err
		}
		opts := cluster.ApplyOptions{Manager: managerOf(link, others[link]), Force: true}
		if _, err := env.Cluster.Apply(ctx, theirs, opts); err != nil {
			return fmt.Errorf("change %s for link %s: %w", describe(o), link, err)
		}
	}
	return nil
}

// enterShared enters an object into the inventory of another link that uses it. A link of an earlier version has none.
func enterShared(ctx context.Context, as Env, o, live *unstructured.Unstructured) error {
	inv, err := as.inventory(ctx)
	if err != nil || inv.unread != nil || inv.uid == "" {
		return err
	}
	e := inv.next(as, o, live)
	return inv.enter(ctx, as, nil, inv.lacks(as.Action, []Item{{Verb: Update, entry: e}}))
}

// notEntered is why an upgrade leaves an object that the release had before: whoever can write the Secret of a release can
// name any object there.
const notEntered = "the inventory of this link does not have it"

// enteredBy reports whether this link has an object of a release in its inventory, or another link that shares it.
func enteredBy(ctx context.Context, env Env, others map[string]string, o *unstructured.Unstructured) (bool, error) {
	users := map[string]string{env.Link: env.Action}
	maps.Copy(users, others)
	for _, link := range sortedKeys(users) {
		as := env
		if link != env.Link {
			as = env.of(link, users[link])
		}
		inv, err := as.inventory(ctx)
		if err != nil {
			return false, err
		}
		if e := inv.find(users[link], entryOf(o.GroupVersionKind(), o.GetNamespace(), o.GetName())); e != nil && (o.GetUID() == "" || e.UID == "" || e.UID == o.GetUID()) {
			return true, nil
		}
	}
	return false, nil
}

// dropped deletes what a new version of the release has no more.
func dropped(ctx context.Context, env Env, others map[string]string, live *unstructured.Unstructured, say Progress) (left string, err error) {
	gvr, _, err := env.Cluster.Resource(ctx, live.GroupVersionKind())
	if err != nil {
		return "", err
	}
	known, err := enteredBy(ctx, env, others, live)
	if err != nil {
		return "", err
	}
	if !known {
		return notEntered, nil
	}
	f := found{PartialObjectMetadata: metadataOf(live), gvk: live.GroupVersionKind(), gvr: gvr}
	if left, err = occupied(ctx, env, f); left != "" || err != nil {
		return left, err
	}
	if err := deleteObject(ctx, env, live); err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	say.Did(Delete, describe(live), "")
	return "", nil
}
