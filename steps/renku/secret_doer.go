package renku

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
)

// sharedSecret writes one key of a Secret that may hold others' keys: it never
// deletes the Secret under them, neither to change it nor to take it back, and
// never loses a value that was somebody else's.
type sharedSecret struct{ steps.Manifest }

// Plan refuses to replace the Secret: that would take the other keys along.
func (s sharedSecret) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := s.Manifest.Plan(ctx, e)
	for i := range c.Items {
		it := &c.Items[i]
		if it.Verb == steps.Replace {
			it.Verb, it.Refused = steps.Update, true
			it.Note = "it can't be changed in place (immutable?) and is not deleted, because it may hold other clusters: answer secret.name with a new one, copy the other keys there and name it in Renku's values"
		}
		if len(it.Conflicts) > 0 && it.Note == "" {
			it.Note = "the key is somebody else's; to take it over, name a file in secret.backup: the old value is saved there first"
		}
	}
	return c, err
}

// Do saves a value that is to be taken over, then applies.
func (s sharedSecret) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	e.Apply.Replace = false
	if path := e.Answers.Text("secret.backup"); e.Apply.TakeOver && path != "" {
		if err := s.makeRoom(ctx, e, path, say); err != nil {
			return err
		}
	}
	return s.Manifest.Do(ctx, e, say)
}

// makeRoom saves the value that somebody else has under the key to a file, and
// takes the key out of the Secret in the version that was saved.
func (s sharedSecret) makeRoom(ctx context.Context, e steps.Env, path string, say steps.Progress) error {
	c, err := s.Manifest.Plan(ctx, e)
	if err != nil {
		return err
	}
	key := e.Answers.Text("cluster.config-name")
	theirs := func(it steps.Item) bool {
		return slices.ContainsFunc(it.Conflicts, func(c cluster.Conflict) bool { return strings.TrimPrefix(c.Field, ".") == "data."+key })
	}
	if !slices.ContainsFunc(c.Items, theirs) {
		return nil
	}
	ns, name := secretWhere(e)
	live, err := fetchSecret(ctx, e, ns, name)
	if err != nil {
		return err
	}
	old, _, _ := unstructured.NestedString(live.Object, "data", key)
	raw, err := base64.StdEncoding.DecodeString(old)
	if err != nil {
		return fmt.Errorf("key %s of Secret %s/%s is not base64", key, ns, name)
	}
	if err := saveOnce(path, raw); err != nil {
		return fmt.Errorf("save the old value of key %s: %w", key, err)
	}
	say.Say("the old value of key %s is saved in %s", key, path)
	patch, err := json.Marshal(map[string]any{"data": map[string]any{key: nil}})
	if err != nil {
		return err
	}
	_, err = e.Cluster.Patch(ctx, secrets, ns, name, patch, cluster.PatchOptions{Manager: managerName(e), UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()})
	return err
}

// saveOnce writes a file that only its owner may read, and overwrites none.
func saveOnce(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if had, readErr := os.ReadFile(path); readErr == nil && string(had) == string(content) {
			return nil
		}
		return fmt.Errorf("%s is there already and holds something else: answer secret.backup with another file", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// managerName is the field manager of the action in hand, as the engine names
// it.
func managerName(e steps.Env) string { return "carrick." + e.Link + "." + e.Action }

func fetchSecret(ctx context.Context, e steps.Env, namespace, name string) (*unstructured.Unstructured, error) {
	return e.Cluster.Fetch(ctx, bareSecret(namespace, name))
}

func bareSecret(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Secret")
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// PlanUndo releases a Secret that this link made where it holds keys of others
// by now, and deletes it only where nothing else is in it.
func (s sharedSecret) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := s.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	for i := range c.Items {
		it := &c.Items[i]
		ns, name, _ := strings.Cut(strings.TrimPrefix(it.What, "Secret "), "/")
		if it.Verb != steps.Delete {
			continue
		}
		live, err := fetchSecret(ctx, e, ns, name)
		if err != nil {
			return c, fmt.Errorf("look what else is in %s: %w", it.What, err)
		}
		if others := othersKeys(live, managerName(e)); len(others) > 0 {
			it.Verb, it.Note, it.Hash = steps.Release, keysNote+strings.Join(others, ", "), "release:"+it.Hash
			c.Rights = append(c.Rights, cluster.Right{Verb: "patch", Resource: "secrets", Namespace: ns, Name: name})
		}
	}
	return c, nil
}

const keysNote = "it also holds "

// Undo takes the key out, and the Secret where it is this link's alone.
func (s sharedSecret) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	c, err := s.PlanUndo(ctx, e)
	if err != nil {
		return err
	}
	for _, it := range c.Items {
		if it.Verb != steps.Release || !strings.HasPrefix(it.Note, keysNote) {
			continue
		}
		ns, name, _ := strings.Cut(strings.TrimPrefix(it.What, "Secret "), "/")
		live, err := fetchSecret(ctx, e, ns, name)
		if err != nil {
			return err
		}
		nothing := bareSecret(ns, name)
		nothing.SetUID(live.GetUID()) // one that is gone must not be made anew
		if _, err := e.Cluster.Apply(ctx, nothing, cluster.ApplyOptions{Manager: managerName(e)}); err != nil {
			return fmt.Errorf("release %s: %w", it.What, err)
		}
		tell(say, steps.Release, it.What)
	}
	return s.Manifest.Undo(ctx, e, say)
}

// tell reports a change, as the engine does of its own.
func tell(say steps.Progress, verb steps.Verb, what string) {
	if say != nil {
		say(steps.Event{Verb: verb, What: what, Text: string(verb) + " " + what})
	}
}

// othersKeys are the keys of a Secret that are not the manager's alone.
func othersKeys(live *unstructured.Unstructured, manager string) []string {
	data, _, _ := unstructured.NestedMap(live.Object, "data")
	var out []string
	for key := range data {
		mine, theirs := false, false
		for _, f := range live.GetManagedFields() {
			if ownsKey(f, key) {
				ours := f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationApply
				mine, theirs = mine || ours, theirs || !ours
			}
		}
		if !mine || theirs {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// ownsKey tells whether an entry of managedFields has a key of a Secret.
func ownsKey(f metav1.ManagedFieldsEntry, key string) bool {
	var fields struct {
		Data map[string]any `json:"f:data"`
	}
	if f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, ok := fields.Data["f:"+key]
	return ok
}

// keyChanged is since when a key of a Secret has its value, as the API server
// noted it; zero where it did not. Whoever writes a value that stands already
// has it, too, from then on, and does not change it: the first counts.
func keyChanged(fields []metav1.ManagedFieldsEntry, key string) time.Time {
	var first time.Time
	for _, f := range fields {
		if ownsKey(f, key) && f.Time != nil && (first.IsZero() || f.Time.Time.Before(first)) {
			first = f.Time.Time
		}
	}
	return first
}
