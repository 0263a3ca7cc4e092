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

// noteCluster and notePool are names of notes in the inventory on the local cluster. A note
// contains the id of an object that this link created in Renku, because objects in Renku cannot
// have labels. Each note has the name of the action that writes it. Undo deletes only objects that
// a note names.
const (
	noteCluster = "register" // the value is the cluster's ULID
	notePool    = "pool"     // the value is the pool's number
)

// earlierNotes maps each note to the prefix of an annotation on the kubeconfigs Secret. The link's
// name follows the prefix. Earlier versions of carrick recorded the ids in these annotations. Undo
// does not rely on them, because anyone who can write the Secret can set them. Apply shows the
// objects in its plan and records their ids in the inventory.
var earlierNotes = map[string]string{noteCluster: "carrick/cluster-id.", notePool: "carrick/pool-id."}

// noteAsked is the value of a note while carrick waits for the response to a create request. If a
// later run finds this value, the response was lost. If the object exists, it belongs to this link.
const noteAsked = "asked"

// unnoted turns a plan item into an update if this link created the object but the note does not
// contain the object's id. This happens if the response was lost, or if an earlier version recorded
// the id in an annotation.
func unnoted(ctx context.Context, e steps.Env, name, id string, item steps.Item) steps.Item {
	was, err := inventory.Note(ctx, e, name)
	note := ""
	switch {
	case err != nil || (item.Verb != steps.Leave && item.Verb != steps.Update):
	case was == noteAsked:
		note = "this link requested the object but received no response, so apply records its id"
	case was == "" && id != "" && earlierNote(ctx, e, name) == id:
		note = fmt.Sprintf(
			"according to the kubeconfigs Secret, this link created the object (id %s). apply records the id in this link's "+
				"inventory, and undo then deletes the object",
			clean.Text(id),
		)
	}
	if note != "" {
		item.Verb, item.Note, item.Hash = steps.Update, steps.JoinNotes(item.Note, note), steps.HashOf(item.Hash+note)
	}
	return item
}

// enterNote records the id of an object in the inventory in the two cases described at unnoted. It
// also removes the annotation that an earlier version set.
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
	say.Did(steps.Update, fmt.Sprintf("the inventory: action %s created id %s in Renku", action, id), "")
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

// earlierNote returns the id that an earlier version recorded in an annotation. It returns "" if
// there is no such annotation or if the Secret cannot be read.
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

// leftEarlier returns an undo item that keeps an object whose id an earlier version recorded in an
// annotation. It returns nil if there is no such annotation.
func leftEarlier(ctx context.Context, e steps.Env, action, what string) []steps.Item {
	id := clean.Text(earlierNote(ctx, e, action))
	if id == "" {
		return nil
	}
	return []steps.Item{{
		Verb: steps.Leave, What: fmt.Sprintf("%s %s in Renku", what, id),
		Note: fmt.Sprintf(
			"an annotation of the kubeconfigs Secret names this link as the creator, but everyone who can write the Secret "+
				"can set the annotation. %s records the id in this link's inventory if the object in Renku has the link's name. "+
				"Undo relies on the inventory",
			e.ApplyStep(action),
		),
	}}
}

// unlessNoted returns the plan items for an object while Renku's API is not available. It returns
// no item if a note shows that this link has already created the object.
func unlessNoted(ctx context.Context, e steps.Env, action string, item steps.Item) []steps.Item {
	was, err := inventory.Note(ctx, e, action)
	if err == nil && (was != "" && was != noteAsked || was == "" && earlierNote(ctx, e, action) != "") {
		return nil
	}
	return []steps.Item{item}
}

// noteAsking sets the note to noteAsked before carrick requests an object. If Renku rejects the
// request, the caller must call refused. refused restores the previous note, unless another run of
// this link has changed the note. If two runs send the request, Renku creates one object and
// rejects the other request.
func noteAsking(ctx context.Context, e steps.Env, action string, say steps.Progress) (refused func() error, err error) {
	before, err := inventory.Note(ctx, e, action)
	if err != nil {
		return nil, err
	}
	if before == noteAsked { // the response was lost, and no object was created
		before = ""
	}
	return func() error {
		if now, err := inventory.Note(ctx, e, action); err != nil || now != noteAsked {
			return err
		}
		return inventory.SetNote(ctx, e, action, before, say)
	}, inventory.SetNote(ctx, e, action, noteAsked, say)
}
