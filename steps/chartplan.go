package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/chart"
)

// standing is what is to be done with a release as it stands.
type standing struct {
	*chart.Work
	alone     string             // why it is left alone; "": it is not
	note      string             // what to say of it
	conflicts []cluster.Conflict // whose it is
	joins     bool               // another link has it, and this one will, too
	theirs    bool               // it is Helm's and stays so, whatever is changed
	others    map[string]string  // links that have it, with their actions
}

// stand looks at the release. One that is stuck and not ours is an error.
func (c Chart) stand(ctx context.Context, env Env, want wanted) (standing, error) {
	w, err := chart.Prepare(ctx, env.Cluster, want.Request)
	s := standing{Work: w}
	if errors.Is(err, cluster.ErrNotServed) {
		return s, Absent("%s", err)
	}
	if err != nil {
		return s, err
	}
	if w.Kind == chart.Fresh {
		return s, nil
	}
	s.others = otherLinks(w.Old.Labels, env.Link)
	others, ours := sortedKeys(s.others), want.Ours(w.Old)
	switch {
	case len(others) > 0 && w.Kind == chart.Upgrade:
		s.note = fmt.Sprintf("link %s uses it, too, in version %s with the values that it has now", strings.Join(others, ", "), w.Old.Version)
		s.conflicts = []cluster.Conflict{{Manager: "link " + others[0], Field: "version and values"}}
	case ours:
	case w.Kind == chart.Renew && len(others) > 0:
		return s, fmt.Errorf("release %s in namespace %s is link %s's and stands at %s: carrick apply that link, then again", w.Old.Name, w.Old.Namespace, others[0], w.Old.Status)
	case w.Kind == chart.Renew:
		return s, w.Stuck()
	case len(others) > 0:
		s.joins, s.note = true, "link "+strings.Join(others, ", ")+" made it; this link uses it, too"
	case w.Old.SameVersion(w.Version):
		s.alone = "somebody else made it, in the version that is wanted: it is left alone, with the values that it has"
	default:
		s.theirs, s.note = true, "somebody else made it, in version "+w.Old.Version+"; it stays theirs, and undo does not take it back: helm rollback does"
		s.conflicts = []cluster.Conflict{{Manager: "Helm", Field: "version"}}
	}
	return s, nil
}

// planRelease is the release itself: chart, version, values.
func (c Chart) planRelease(ctx context.Context, env Env, want wanted, s standing, ch *Change) (Item, error) {
	item := Item{What: releaseAt(want.Namespace, want.Name), Note: s.note, Conflicts: s.conflicts}
	if s.Kind == chart.Keep {
		record, err := s.Record()
		if err != nil {
			return item, err
		}
		p, err := planObject(ctx, env, record)
		if err != nil {
			return item, err
		}
		ch.Rights = append(ch.Rights, p.rights...)
		item.Verb, item.Hash, item.Refused = p.Verb, p.Hash, p.Refused
		if item.entry, err = s.entry(ctx, env, want, p.entry.Created); err != nil {
			return item, err
		}
		if !s.joins {
			item.Note = p.Note
		}
		return item, nil
	}
	if !s.theirs {
		var err error
		if item.entry, err = s.entry(ctx, env, want, s.Kind == chart.Fresh || (want.Ours(s.Old) && len(s.others) == 0)); err != nil {
			return item, err
		}
	}
	item.Verb = Update
	if s.Kind == chart.Fresh {
		item.Verb = Create
	}
	if s.Kind == chart.Renew {
		item.Note = "it stands at " + s.Old.Status + " and is installed again"
		if s.Resumes() {
			item.Note = "it was begun and not finished: this goes on with it"
		}
	}
	notes := append([]string{item.Note}, s.Left...)
	if s.From != "" {
		notes = append(notes, "chart "+c.Chart+" "+s.Version+" of "+s.From)
	}
	if len(s.Unknown) > 0 {
		notes = append(notes, "the chart does not know these values: "+strings.Join(s.Unknown, ", "))
	}
	item.Note = strings.TrimPrefix(strings.Join(notes, "; "), "; ")
	item.Diff = cluster.Diff(oldRelease(s, want), shownRelease(c.Chart, s.Version, want.open))
	item.Hash = hash(item.Verb, item.What, c.Chart, s.Version, want.Source, s.From, want.Values)
	ch.Rights = append(ch.Rights, recordRights(want.Namespace)...)
	return item, nil
}

// entry is the release's in the inventory. Where that has none yet, created says whether this link installed it.
func (s standing) entry(ctx context.Context, env Env, want wanted, created bool) (*entry, error) {
	inv, err := env.inventory(ctx)
	if err != nil {
		return nil, err
	}
	e := entryOf(releaseKind, want.Namespace, want.Name)
	e.Created = created
	if old := inv.find(env.Action, e); old != nil && s.Kind != chart.Fresh {
		e.Created = old.Created
	}
	if s.Kind == chart.Keep {
		e.UID = s.Old.UID // any other kind writes a revision, and with it another Secret
	}
	return &e, nil
}

// recordRights are those that it takes to read and to write down a release.
func recordRights(namespace string) []cluster.Right {
	record := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	record.SetNamespace(namespace)
	return rightsTo(record, secretsAt)
}

// planParts plans all objects of the release, many at a time: each takes two
// or three requests, and a chart may have a hundred.
func (s standing) planParts(ctx context.Context, env Env, ch *Change) error {
	objs := slices.Concat(s.CRDs, s.Objects)
	parts := make([]Change, len(objs))
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(16)
	for i, o := range objs {
		all.Go(func() error { return s.planPart(each, env, o, &parts[i]) })
	}
	err := all.Wait()
	for _, p := range parts {
		ch.Items, ch.Rights = append(ch.Items, p.Items...), append(ch.Rights, p.Rights...)
	}
	return err
}

// planPart is one object of the release. What a template makes at random is
// another at each rendering, and no other plan.
func (s standing) planPart(ctx context.Context, env Env, o *unstructured.Unstructured, ch *Change) error {
	if s.theirs {
		return planTheirs(ctx, env, o, ch)
	}
	p, err := planObject(ctx, env, o)
	if absent := (*AbsentError)(nil); errors.As(err, &absent) {
		p.Verb, p.Note, err = Create, "its kind comes with this chart", nil
		p.Diff = cluster.Diff(nil, o)
	}
	if err != nil {
		return err
	}
	if s.Kind == chart.Keep {
		believed, err := s.believes(ctx, env, o, p.Verb != Create)
		if err != nil {
			return err
		}
		if !believed {
			ch.Items = append(ch.Items, Item{Verb: Leave, What: p.What, Note: "the stored release names it, and " + notEntered + ": whoever can write Secrets in " + s.Old.Namespace + " can have added it"})
			return nil
		}
	}
	if s.Kind != chart.Keep && p.Verb.Changes() {
		p.Hash = hash(p.Verb, p.What, p.Conflicts)
	}
	ch.Items = append(ch.Items, p.Item)
	ch.Rights = append(ch.Rights, p.rights...)
	return nil
}

// believes reports whether an object that the stored release names is part of it. Whoever can write its Secret can name
// anything there, so the inventory decides; where an earlier version installed the release, what exists.
func (s standing) believes(ctx context.Context, env Env, o *unstructured.Unstructured, exists bool) (bool, error) {
	known, err := enteredBy(ctx, env, s.others, o)
	if known || err != nil {
		return known, err
	}
	inv, err := env.inventory(ctx)
	if err != nil {
		return false, err
	}
	return exists && inv.find(env.Action, entryOf(releaseKind, s.Old.Namespace, s.Old.Name)) == nil, nil
}

// doStored writes an object of a release that stands, as its Secret has it, where that is believed.
func (s standing) doStored(ctx context.Context, env Env, o *unstructured.Unstructured, say Progress) error {
	if o.GetKind() == secretKind.Kind && strings.HasPrefix(o.GetName(), releaseSecret) {
		return doObject(ctx, env, o, say)
	}
	_, err := env.Cluster.Fetch(ctx, o)
	believed, fault := s.believes(ctx, env, o, !apierrors.IsNotFound(err) && !errors.Is(err, cluster.ErrNotServed))
	if fault != nil {
		return fault
	}
	if !believed {
		say.Say("%s is left: the stored release names it, and %s", describe(o), notEntered)
		return chart.ErrLeft
	}
	return doObject(ctx, env, o, say)
}

// planRest is what runs besides, and what goes.
func (s standing) planRest(ctx context.Context, env Env, ch *Change) error {
	for _, o := range s.Hooks {
		ch.Items = append(ch.Items, Item{Verb: Run, What: describe(o), Note: "runs before or after the rest", Hash: hash(Run, describe(o)), entry: newEntry(o)})
		if gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind()); err == nil {
			ch.Rights = append(ch.Rights, rightsTo(o, gvr)...)
			ch.Rights = append(ch.Rights, rightToDelete(o, gvr))
		}
	}
	for _, o := range s.Gone {
		known, err := enteredBy(ctx, env, s.others, o)
		if err != nil {
			return err
		}
		if !known {
			ch.Items = append(ch.Items, Item{Verb: Leave, What: describe(o), Note: "the new version has it no more; " + notEntered})
			continue
		}
		ch.Items = append(ch.Items, Item{Verb: Delete, What: describe(o), Note: "the new version has it no more", Hash: hash(Delete, describe(o))})
		if gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind()); err == nil {
			ch.Rights = append(ch.Rights, rightToDelete(o, gvr))
		}
	}
	return nil
}
