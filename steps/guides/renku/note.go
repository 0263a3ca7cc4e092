package renku

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// The inventory on Renku's own cluster notes the records that this link created in Renku, by
// action. Renku's records themselves cannot be marked. Undo deletes only records that the
// inventory notes.
const (
	noteCluster = "register" // the cluster's ULID
	notePool    = "pool"     // the pool's number
)

// earlierNotes are the prefixes of annotations on the kubeconfigs Secret; the link's name
// follows. Earlier versions of carrick noted these records there. Everyone who can write that
// Secret can write the annotations. Therefore apply shows the records that the annotations name
// and enters them into the inventory, and undo keeps records that only the annotations name.
var earlierNotes = map[string]string{noteCluster: "carrick/cluster-id.", notePool: "carrick/pool-id."}

// noteAsked is the note while a request to create a record is in progress. If a later run still
// finds it, the response was lost and an existing record belongs to this link.
const noteAsked = "asked"

// unnoted turns a plan item that leaves a record unchanged into an update if this link created
// the record and its id is not noted. This happens if the response was lost or an earlier
// version noted the id elsewhere.
func unnoted(ctx context.Context, e steps.Env, name, id string, item steps.Item) steps.Item {
	was, err := inventory.Note(ctx, e, name)
	note := ""
	switch {
	case err != nil || (item.Verb != steps.Leave && item.Verb != steps.Update):
	case was == noteAsked:
		note = "this link requested it but received no answer: its id still has to be recorded"
	case was == "" && id != "" && earlierNote(ctx, e, name) == id:
		note = fmt.Sprintf(
			"the kubeconfigs Secret says that this link created it (id %s): apply records it in this link's inventory, and "+
				"undo then deletes it",
			clean.Text(id),
		)
	}
	if note != "" {
		item.Verb, item.Note, item.Hash = steps.Update, steps.JoinNotes(item.Note, note), steps.HashOf(item.Hash+note)
	}
	return item
}

// enterNote notes the id of a record in Renku in the cases that unnoted describes.
func enterNote(ctx context.Context, e steps.Env, action, id string, say steps.Progress) error {
	was, err := inventory.Note(ctx, e, action)
	if err != nil {
		return err
	}
	earlier := was == "" && earlierNote(ctx, e, action) == id
	if was != noteAsked && !earlier {
		return nil
	}
	if err := inventory.SetNote(ctx, e, action, id, say); err != nil {
		return err
	}
	say.Did(steps.Update, fmt.Sprintf("%s %s in Renku is recorded as created by this link", action, id), "")
	if !earlier {
		return nil
	}
	ns, name := secretWhere(e)
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{earlierNotes[action] + e.Link: nil}}},
	)
	if err != nil {
		return err
	}
	if _, err := e.Cluster.Patch(
		ctx, check.Secrets, ns, name, patch, cluster.PatchOptions{Manager: e.Manager()},
	); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the earlier note from Secret %s/%s: %w", ns, name, err)
	}
	return nil
}

// earlierNote returns the id that an earlier version noted, or "" if there is none or it cannot
// be read.
func earlierNote(ctx context.Context, e steps.Env, action string) string {
	ns, name := secretWhere(e)
	if ns == "" || name == "" {
		return ""
	}
	found, err := e.Cluster.Find(ctx, check.Secrets, ns, cluster.Selector{Fields: "metadata.name=" + name})
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0].Annotations[earlierNotes[action]+e.Link]
}

// leftEarlier returns the plan item that undo keeps a record that an earlier version noted. It
// returns nil if there is no such record.
func leftEarlier(ctx context.Context, e steps.Env, action, what string) []steps.Item {
	id := clean.Text(earlierNote(ctx, e, action))
	if id == "" {
		return nil
	}
	return []steps.Item{{
		Verb: steps.Leave, What: fmt.Sprintf("%s %s in Renku", what, id),
		Note: fmt.Sprintf(
			"an annotation of the kubeconfigs Secret says that this link created it, but whoever can write the Secret can "+
				"write that. %s records it in this link's inventory if Renku has it under the link's name, and undo relies on "+
				"the inventory",
			e.ApplyStep(action),
		),
	}}
}

// unlessNoted returns the plan items for creating a record while Renku's API is not available.
// It returns none if the notes say that this link has already created the record.
func unlessNoted(ctx context.Context, e steps.Env, action string, item steps.Item) []steps.Item {
	was, err := inventory.Note(ctx, e, action)
	if err == nil && (was != "" && was != noteAsked || was == "" && earlierNote(ctx, e, action) != "") {
		return nil
	}
	return []steps.Item{item}
}

// noteAsking stores noteAsked before Renku is asked to create a record. The returned function
// reverts the note and must be called if Renku refuses. It keeps a note that another run of this
// link has written in the meantime: if two run at once, one creates the record and the other is
// refused.
func noteAsking(ctx context.Context, e steps.Env, action string, say steps.Progress) (refused func() error, err error) {
	before, err := inventory.Note(ctx, e, action)
	if err != nil {
		return nil, err
	}
	if before == noteAsked { // the response was lost, and no record was created
		before = ""
	}
	return func() error {
		if now, err := inventory.Note(ctx, e, action); err != nil || now != noteAsked {
			return err
		}
		return inventory.SetNote(ctx, e, action, before, say)
	}, inventory.SetNote(ctx, e, action, noteAsked, say)
}
