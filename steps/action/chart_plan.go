package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/chart"
	"carrick/cluster/diff"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/inventory"
)

type standing struct {
	*chart.Work
	alone     string // why the release is kept unchanged, or ""
	note      string
	conflicts []failure.Conflict // with its current owners
	joins     bool               // another link installed it, and this link will share it
	theirs    bool               // another user manages it with Helm and continues to do so
	claimed   bool               // it has this link's label but no inventory entry; taking it over adds the entry
	others    map[string]string  // links whose inventories contain the release, with their actions
}

// stand reads the release. It returns an error if a release that does not belong to this link is stuck.
func (c Chart) stand(ctx context.Context, env steps.Env, want wanted) (standing, error) {
	w, err := chart.Prepare(ctx, env.Cluster, want.Request)
	s := standing{Work: w}
	if errors.Is(err, failure.ErrNotServed) {
		return s, steps.Absent("%s", err)
	}
	if err != nil {
		return s, err
	}
	if w.Kind == chart.Fresh {
		return s, nil
	}
	var claims []string
	if s.others, claims, err = sharers(ctx, env, w.Old); err != nil {
		return s, err
	}
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return s, err
	}
	entry := inv.Find(env.Action, releaseEntry(w.Old))
	others, marked := slices.Sorted(maps.Keys(s.others)), want.Ours(w.Old)
	if len(claims) > 0 {
		w.Left = append(
			w.Left,
			fmt.Sprintf(
				"it has the label of link %s, which has no inventory on this cluster and is ignored. If that link uses the "+
					"release, run carrick apply for that link first",
				strings.Join(claims, ", "),
			),
		)
	}
	switch {
	case w.Doubted && entry != nil && entry.Content == "":
		w.Left = append(
			w.Left,
			"an earlier version of carrick installed it, and the inventory does not list its objects: it is reinstalled "+
				"from the chart",
		)
	case w.Doubted && entry != nil:
		w.Left = append(w.Left, "its Secret differs from the inventory of this link: it is reinstalled from the chart")
	}
	switch {
	case len(others) > 0 && w.Kind == chart.Upgrade:
		s.note = fmt.Sprintf(
			"it is also used by link %s, in version %s with its current values", strings.Join(others, ", "), w.Old.Version,
		)
		s.conflicts = []failure.Conflict{{Manager: "link " + others[0], Field: "version and values"}}
	case marked && entry != nil:
	case w.Kind == chart.Renew && len(others) > 0:
		return s, fmt.Errorf(
			"release %s in namespace %s belongs to link %s and has status %s: run carrick apply for that link, then apply again",
			w.Old.Name,
			w.Old.Namespace, others[0], w.Old.Status,
		)
	case len(others) == 0 && (marked || entry != nil && w.Kind == chart.Renew):
		s.note = "it has this link's label, which others can forge, but is not in the inventory; it is reinstalled from " +
			"the chart and then belongs to this link: undo deletes it"
		if entry != nil {
			s.note = "its Secret differs from the inventory of this link; it is reinstalled from the chart"
		}
		s.claimed, s.conflicts = true, []failure.Conflict{{Manager: "the writer of its Secret", Field: "content"}}
	case w.Kind == chart.Renew:
		return s, w.Stuck(env.Kubectl())
	case len(others) > 0:
		s.joins, s.note = true, "link "+strings.Join(others, ", ")+" created the release, and this link shares it"
	case w.Old.SameVersion(w.Version):
		s.alone = "another user installed it in the requested version: it is kept with its current values"
	default:
		s.theirs, s.note = true, "another user installed it in version "+w.Old.Version+
			"; it remains theirs, and undo does not revert the upgrade: use helm rollback"
		s.conflicts = []failure.Conflict{{Manager: "Helm", Field: "version"}}
	}
	return s, nil
}

func (c Chart) planRelease(
	ctx context.Context, env steps.Env, want wanted, s standing, ch *steps.Change,
) (steps.Item, error) {
	item := steps.Item{What: releaseAt(want.Namespace, want.Name), Note: s.note, Conflicts: s.conflicts}
	if s.Kind == chart.Keep {
		record, err := s.Record()
		if err != nil {
			return item, err
		}
		p, err := planObject(ctx, env, record)
		if err != nil {
			return item, err
		}
		ch.Permissions = append(ch.Permissions, p.rights...)
		item.Verb, item.Hash, item.Refused = p.Verb, p.Hash, p.Refused
		if item.Entry, err = s.entry(ctx, env, want); err != nil {
			return item, err
		}
		if !s.joins {
			item.Note = p.Note
		}
		return item, nil
	}
	if !s.theirs && !s.claimed {
		var err error
		if item.Entry, err = s.entry(ctx, env, want); err != nil {
			return item, err
		}
	}
	item.Verb = steps.Update
	if s.Kind == chart.Fresh {
		item.Verb = steps.Create
	}
	if s.Kind == chart.Renew {
		how := "it has status " + s.Old.Status + " and is reinstalled"
		if s.Resumes() {
			how = "an earlier run was interrupted, and carrick resumes it"
		}
		item.Note = steps.JoinNotes(item.Note, how)
	}
	notes := append([]string{item.Note}, s.Left...)
	if s.From != "" {
		notes = append(notes, "chart "+c.Chart+" "+s.Version+" of "+s.From)
	}
	if len(s.Unknown) > 0 {
		notes = append(notes, "values unknown to the chart: "+strings.Join(s.Unknown, ", "))
	}
	item.Note = strings.TrimPrefix(strings.Join(notes, "; "), "; ")
	item.Diff = diff.Objects(oldRelease(s, want), shownRelease(c.Chart, s.Version, want.open))
	stored := ""
	if s.Old != nil {
		stored = steps.Fingerprint(s.Old.Revision, s.Old.Status, s.Old.Content())
	}
	item.Hash = steps.Fingerprint(
		item.Verb, item.What, c.Chart, s.Version, want.Source, s.From, want.Values, stored, s.conflicts,
	)
	ch.Permissions = append(ch.Permissions, recordPermissions(want.Namespace)...)
	return item, nil
}

// entry returns the release's inventory entry, without the hash of the Secret that this run is about to write. For a
// new entry, Created is set if this link installs the release, or if the release has only this link's ownership label.
func (s standing) entry(ctx context.Context, env steps.Env, want wanted) (*steps.Entry, error) {
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return nil, err
	}
	e := steps.EntryOf(inventory.ReleaseKind, want.Namespace, want.Name)
	e.Created = s.Kind == chart.Fresh || (want.Ours(s.Old) && len(s.others) == 0)
	if old := inv.Find(env.Action, e); old != nil {
		e.Created, e.Content = s.Kind == chart.Fresh || old.Created, old.Content
	}
	if s.Kind == chart.Keep { // every other kind writes a new revision, which is a new Secret
		e.UID, e.Content = s.Old.UID, s.Old.Content()
	}
	return &e, nil
}

// enterRecord adds the hash of the release's new Secret content to the inventory before the content is written. carrick
// ignores content that anyone else writes to the Secret.
func (s standing) enterRecord(
	ctx context.Context, env steps.Env, want wanted, o *unstructured.Unstructured, say steps.Progress,
) error {
	e, err := s.entry(ctx, env, want)
	if err != nil {
		return err
	}
	if e.Content, err = chart.ContentOf(o); err != nil {
		return err
	}
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return err
	}
	return inv.Enter(ctx, env, say, inv.Lacks(env.Action, []steps.Item{{Verb: steps.Update, Entry: e}}))
}

func recordPermissions(namespace string) []permission.Rule {
	record := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	record.SetNamespace(namespace)
	return RightsTo(record, secretsAt)
}

// planParts plans all objects of the release concurrently. Each object requires two or three requests, and a chart can
// have a hundred objects.
func (s standing) planParts(ctx context.Context, env steps.Env, ch *steps.Change) error {
	objs := slices.Concat(s.CRDs, s.Objects)
	parts := make([]steps.Change, len(objs))
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(16)
	for i, o := range objs {
		all.Go(func() error { return s.planPart(each, env, o, &parts[i]) })
	}
	err := all.Wait()
	for _, p := range parts {
		ch.Items, ch.Permissions = append(ch.Items, p.Items...), append(ch.Permissions, p.Permissions...)
	}
	return err
}

// planPart plans one object of the release. Random values that a template generates differ each time, so the plan's
// hash does not include them.
func (s standing) planPart(ctx context.Context, env steps.Env, o *unstructured.Unstructured, ch *steps.Change) error {
	if s.theirs {
		return planTheirs(ctx, env, o, ch)
	}
	p, err := planObject(ctx, env, o)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) && absent.Ending == "" {
		p.Verb, p.Note, err = steps.Create, "the chart installs its kind", nil
		p.Diff = diff.Objects(nil, o)
	}
	if err != nil {
		return err
	}
	if s.Kind != chart.Keep && p.Verb.Changes() {
		p.Hash = steps.Fingerprint(p.Verb, p.What, p.Conflicts)
	}
	ch.Items = append(ch.Items, p.Item)
	ch.Permissions = append(ch.Permissions, p.rights...)
	return nil
}

// planRest plans the chart's hooks and the deletion of objects that the chart no longer contains.
func (s standing) planRest(ctx context.Context, env steps.Env, ch *steps.Change) error {
	for _, o := range s.Hooks {
		ch.Items = append(
			ch.Items,
			steps.Item{
				Verb: steps.Run, What: inventory.Describe(o), Note: "hook that runs before or after the other objects",
				Hash: steps.Fingerprint(steps.Run, inventory.Describe(o)), Entry: steps.NewEntry(o),
			},
		)
		if gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind()); err == nil {
			ch.Permissions = append(ch.Permissions, RightsTo(o, gvr)...)
			ch.Permissions = append(ch.Permissions, rightToDelete(o, gvr))
		}
	}
	for _, o := range s.Gone {
		const why = "the new version does not contain it"
		live, err := env.Cluster.Fetch(ctx, o)
		if apierrors.IsNotFound(err) {
			continue
		}
		if apierrors.IsForbidden(err) { // reported later with all other missing permissions
			note := why + "; it cannot be read: " + failure.Explain(err)
			ch.Items = append(ch.Items, steps.Item{Verb: steps.Delete, What: inventory.Describe(o), Note: note, Refused: true})
			if gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind()); err == nil {
				ch.Permissions = append(append(ch.Permissions, RightsTo(o, gvr)...), rightToDelete(o, gvr))
			}
			continue
		}
		if err != nil {
			return err
		}
		left, err := stays(ctx, env, s.others, live)
		if err != nil {
			return err
		}
		if left != "" {
			ch.Items = append(ch.Items, steps.Item{Verb: steps.Leave, What: inventory.Describe(o), Note: why + "; " + left})
			continue
		}
		it := steps.Item{
			Verb: steps.Delete, What: inventory.Describe(o), Note: why,
			Hash: steps.Fingerprint(steps.Delete, inventory.Describe(o), live.GetUID()),
		}
		ch.Items = append(ch.Items, it)
		if gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind()); err == nil {
			ch.Permissions = append(ch.Permissions, rightToDelete(o, gvr))
		}
	}
	return nil
}
