package renku

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// What this link made in Renku is noted on the local Secret with the
// kubeconfigs: Renku's own records have no place for a mark. Undo takes back
// what is noted there and nothing else.
const (
	noteCluster = "carrick/cluster-id." // + link: the cluster's ULID
	notePool    = "carrick/pool-id."    // + link: the pool's number
)

// noteAsked is noted before Renku is asked to make something. Whoever finds it
// later knows that an answer was lost, and that what stands there is ours.
const noteAsked = "asked"

// lostAnswer makes a change of what stands in Renku as it should, where the
// answer of who made it was lost: it has to be noted still which it is.
func lostAnswer(ctx context.Context, e steps.Env, prefix string, item steps.Item) steps.Item {
	if was, err := noted(ctx, e, prefix); item.Verb == steps.Leave && err == nil && was == noteAsked {
		item.Verb, item.Note = steps.Update, "this link asked for it and did not hear the answer: which it is has to be noted still"
	}
	return item
}

// noteHolder names the Secret, for the rights and the texts.
func noteHolder(e steps.Env) (namespace, name string, err error) {
	if namespace, name = secretWhere(e); name == "" {
		return "", "", steps.Absent("nothing is answered for secret.name")
	}
	return namespace, name, nil
}

// noted reads a note; "" is none. It reads metadata alone, and afresh.
func noted(ctx context.Context, e steps.Env, prefix string) (string, error) {
	ns, name, err := noteHolder(e)
	if err != nil {
		return "", err
	}
	found, err := e.Cluster.Find(ctx, secrets, ns, cluster.Selector{Fields: "metadata.name=" + name})
	if err != nil {
		return "", fmt.Errorf("look for what this link noted on Secret %s/%s: %w", ns, name, err)
	}
	if len(found) == 0 {
		return "", steps.Absent("there is no Secret %s/%s", ns, name)
	}
	return found[0].Annotations[prefix+e.Link], nil
}

// note writes a note, or takes it away (""). A Secret that is gone has no
// notes.
func note(ctx context.Context, e steps.Env, prefix, value string) error {
	ns, name, err := noteHolder(e)
	if err != nil {
		return err
	}
	return noteOn(ctx, e, ns, name, prefix, value)
}

func noteOn(ctx context.Context, e steps.Env, ns, name, prefix, value string) error {
	var v any = value
	if value == "" {
		v = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{prefix + e.Link: v}}})
	if err != nil {
		return err
	}
	_, err = e.Cluster.Patch(ctx, secrets, ns, name, patch, cluster.PatchOptions{Manager: e.Manager()})
	if value == "" && apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("note on Secret %s/%s what this link makes in Renku: %w", ns, name, err)
	}
	return nil
}

// noteAsking notes that Renku is about to be asked. What it returns takes that back
// where Renku refused, and leaves what another carrick of this link has noted
// meanwhile: of two at once one makes it and the other is refused.
func noteAsking(ctx context.Context, e steps.Env, prefix string) (refused func() error, err error) {
	before, err := noted(ctx, e, prefix)
	if err != nil {
		return nil, err
	}
	if before == noteAsked { // its answer was lost, and nothing came of it
		before = ""
	}
	return func() error {
		if now, err := noted(ctx, e, prefix); err != nil || now != noteAsked {
			return err
		}
		return note(ctx, e, prefix, before)
	}, note(ctx, e, prefix, noteAsked)
}

// noteRights are what it takes to note and to look.
func noteRights(e steps.Env) []cluster.Right {
	ns, name, err := noteHolder(e)
	if err != nil {
		return nil
	}
	return []cluster.Right{
		{Verb: "list", Resource: "secrets", Namespace: ns},
		{Verb: "patch", Resource: "secrets", Namespace: ns, Name: name},
	}
}

// noteHolders are the Secrets on which this link noted something: those with its mark in Renku's own namespace, so that a
// note is found although secret.name is answered otherwise by now. Where none of them has the note, or they may not be
// listed, it is the one that is answered. Secrets of other namespaces do not count: any tenant can write a note there,
// and undo would delete what it names with the rights of Renku's admin. Those are returned by notedElsewhere.
func noteHolders(ctx context.Context, e steps.Env, prefix string) ([]metav1.PartialObjectMetadata, error) {
	has := func(o metav1.PartialObjectMetadata) bool { return o.Annotations[prefix+e.Link] != "" }
	ns, name := secretWhere(e)
	if unread := e.Sound(); unread != nil {
		return nil, fmt.Errorf("which Secret has what this link noted can't be told; answer secret.name: %w", unread)
	}
	if ns == "" {
		return nil, nil // nothing names one
	}
	marked, err := e.Cluster.Find(ctx, secrets, ns, e.Marked(""))
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("look for what this link noted on Secrets: %w", err)
	}
	if out := filter(marked, has); len(out) > 0 || name == "" {
		return out, nil
	}
	found, err := e.Cluster.Find(ctx, secrets, ns, cluster.Selector{Fields: "metadata.name=" + name})
	if err != nil {
		return nil, fmt.Errorf("look for what this link noted on Secret %s/%s: %w", ns, name, err)
	}
	return filter(found, has), nil
}

// notedElsewhere says of each Secret outside Renku's namespace that has a note of this link that undo ignores it.
func notedElsewhere(ctx context.Context, e steps.Env, prefix, what string) []steps.Item {
	ns, _ := secretWhere(e)
	marked, err := e.Cluster.Find(ctx, secrets, "", e.Marked(""))
	if err != nil {
		return nil // who may not list them is not misled by them
	}
	var out []steps.Item
	for _, o := range marked {
		if id := o.Annotations[prefix+e.Link]; id != "" && o.Namespace != ns {
			space := cluster.Clean(o.Namespace)
			out = append(out, steps.Item{
				Verb: steps.Leave, What: fmt.Sprintf("%s %s in Renku", what, cluster.Clean(id)),
				Note: fmt.Sprintf("Secret %s/%s names it, and anyone who can write Secrets in %s could have written that. If Renku runs there, answer renku.namespace with %s", space, cluster.Clean(o.Name), space, space),
			})
		}
	}
	return out
}

func filter[T any](list []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !keep(v) })
}

// noteForUndo reads a note where a Secret that is gone means that nothing is
// left to take back.
func noteForUndo(ctx context.Context, e steps.Env, prefix string) (string, error) {
	holders, err := noteHolders(ctx, e, prefix)
	if err != nil || len(holders) == 0 {
		return "", err
	}
	return holders[0].Annotations[prefix+e.Link], nil
}

// dropNote takes a note away, wherever it is.
func dropNote(ctx context.Context, e steps.Env, prefix string) error {
	holders, err := noteHolders(ctx, e, prefix)
	if err != nil {
		return err
	}
	for _, o := range holders {
		if err := noteOn(ctx, e, o.Namespace, o.Name, prefix, ""); err != nil {
			return err
		}
	}
	return nil
}
