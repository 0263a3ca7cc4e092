package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/inventory"
)

type installed struct {
	*chart.Release
	found // Secret of the newest revision
	item  steps.Item
	parts []part
	hooks []steps.Item // hooks that helm uninstall would run
}

// installed returns the releases whose newest revision has this action's ownership label.
func (c Chart) installed(ctx context.Context, env steps.Env) (out []installed, blind bool, err error) {
	if env.Cluster == nil {
		return nil, false, fmt.Errorf("chart %s: the %s is not a cluster", c.Chart, env.SideName())
	}
	if _, err := inventory.Readable(ctx, env); err != nil {
		return nil, false, err
	}
	sel := cluster.Selector{Labels: "owner=helm," + steps.LinkLabel(env.Link) + "=" + env.Action}
	list, err := env.Cluster.Find(ctx, secretsAt, "", sel)
	if apierrors.IsForbidden(err) {
		_, namespace, fault := c.at(ctx, env)
		if fault != nil {
			return nil, false, err
		}
		blind = true
		list, err = env.Cluster.Find(ctx, secretsAt, namespace, sel)
	}
	if err != nil {
		return nil, blind, fmt.Errorf("find releases with this link's label: %w", err)
	}
	for _, m := range newest(list) {
		in, err := c.look(ctx, env, m)
		if err != nil {
			return nil, blind, err
		}
		out = append(out, in)
	}
	return out, blind, nil
}

// newest returns the newest Secret of each release.
func newest(list []metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata {
	last := map[string]metav1.PartialObjectMetadata{}
	for _, m := range list {
		key := m.Namespace + "/" + m.Labels["name"]
		if old, ok := last[key]; !ok || revisionOf(m) > revisionOf(old) {
			last[key] = m
		}
	}
	var out []metav1.PartialObjectMetadata
	for _, key := range slices.Sorted(maps.Keys(last)) {
		out = append(out, last[key])
	}
	return out
}

func revisionOf(m metav1.PartialObjectMetadata) int {
	n, _ := strconv.Atoi(m.Labels["version"])
	return n
}

func (c Chart) look(ctx context.Context, env steps.Env, m metav1.PartialObjectMetadata) (installed, error) {
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return installed{}, err
	}
	in := installed{found: found{PartialObjectMetadata: m, gvk: secretKind, gvr: secretsAt}}
	if e := inv.Find(env.Action, steps.EntryOf(inventory.ReleaseKind, m.Namespace, m.Labels["name"])); e != nil &&
		(e.UID == "" || e.UID == m.UID) {
		in.entry = e
	}
	in.Release, err = chart.Current(ctx, env.Cluster, m.Namespace, m.Labels["name"])
	if errors.As(err, new(*chart.UnreadableError)) || errors.Is(err, chart.ErrNoRelease) || errors.Is(err, chart.ErrName) {
		// Any tenant can write such a Secret, so it must not block the rest of the undo.
		in.item = steps.Item{
			Verb: steps.Leave, What: releaseAt(m.Namespace, clean.Text(m.Labels["name"])), Note: clean.Text(err.Error()),
		}
		return in, nil
	}
	if err != nil {
		return in, err
	}
	in.item, err = planUndo(ctx, env, in.found)
	if in.entry == nil && err == nil && in.item.Verb == steps.Leave && inventory.Wrote(env.Link, m.ManagedFields) {
		in.item.What = releaseAt(m.Namespace, m.Labels["name"])
		return in, nil
	}
	in.item.What = releaseAt(m.Namespace, m.Labels["name"])
	if in.Release.UID != m.UID || (in.item.Verb == steps.Leave && err == nil) {
		in.item.Verb = steps.Leave
		if in.entry != nil {
			in.item.Note = fmt.Sprintf(
				"another tool changed the release after this link did. To see the objects that helm uninstall would delete and "+
					"the hooks that it would run: helm get manifest -n %[1]s %[2]s; helm get hooks -n %[1]s %[2]s", m.Namespace,
				m.Labels["name"],
			)
		}
		in.item.Hash = steps.Fingerprint(in.item.Verb, in.item.What, in.Release.UID)
	}
	if err != nil || in.item.Verb == steps.Leave {
		return in, err
	}
	if in.item.Verb == steps.Delete {
		in.hooks = notRun(in)
	}
	in.parts, err = partsOf(ctx, env, in.Release)
	if errors.As(err, new(*chart.UnreadableError)) { // as above; an undo still deletes the objects in the inventory
		in.item = steps.Item{Verb: steps.Leave, What: in.item.What, Note: clean.Text(err.Error())}
		in.hooks = nil
		return in, nil
	}
	return in, err
}

// notRun returns items for the hooks that helm uninstall would run and that carrick's undo does not run.
func notRun(in installed) []steps.Item {
	var out []steps.Item
	for _, h := range in.Release.DeleteHooks() {
		out = append(out, steps.Item{
			Verb: steps.Leave, What: h + " of " + in.item.What,
			Note: fmt.Sprintf(
				"undo runs no hooks of a stored release, because anyone who can write Secrets in %[1]s can change them. To read "+
					"the hooks: helm get hooks -n %[1]s %[2]s",
				in.Namespace, in.Labels["name"],
			),
		})
	}
	return out
}

// partsOf plans the undo of the objects in a release's manifest and of the objects that its hooks created.
func partsOf(ctx context.Context, env steps.Env, r *chart.Release) ([]part, error) {
	objs, err := r.Parts(ctx, env.Cluster)
	if err != nil {
		return nil, err
	}
	traces, err := r.Traces(ctx, env.Cluster)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, o := range append(objs, traces...) {
		live, err := env.Cluster.Fetch(ctx, o)
		if apierrors.IsNotFound(err) || errors.Is(err, failure.ErrNotServed) {
			continue
		}
		if err != nil {
			return out, err
		}
		p, err := undoPart(ctx, env, live)
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}
