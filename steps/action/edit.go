package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/diff"
	"carrick/steps"
	"carrick/steps/inventory"
)

// noteWritten is the annotation with the hash of the text that carrick wrote.
const noteWritten = "carrick/config-written"

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// Edit writes one key of a ConfigMap that another tool manages, such as Helm. The key belongs to that tool, so the user
// must confirm taking it over. Undo restores the previous text. If someone has changed the key since, undo restores
// only the settings that carrick set.
//
// The asset is that ConfigMap with only the key and the annotation carrick/config-written: ${values.hash}. Edit
// provides the values namespace, name, text and hash.
type Edit struct {
	Manifest
	Key string
	// At returns the namespace and name of the ConfigMap. If the ConfigMap does not exist, At returns an AbsentError that
	// names what creates it.
	At func(context.Context, steps.Env) (namespace, name string, err error)
	// Text returns the expected value of the key.
	Text func(context.Context, steps.Env) (string, error)
	// Settings returns the settings that Text makes in text, the current value of the key. The value of a setting that
	// Text removes is nil or "".
	Settings func(ctx context.Context, e steps.Env, text string) (map[string]any, error)
	// Read returns the settings in text.
	Read func(text string) (map[string]any, error)
	// Set returns text with the given settings. It removes those whose value is nil, and keeps the rest of text verbatim.
	Set func(text string, settings map[string]any) (string, error)
	// Again names what overwrites the key from time to time, such as "a helm upgrade".
	Again string
	// Hand returns how to remove manually what carrick wrote. It is shown when an undo can't remove it.
	Hand func(context.Context, steps.Env) string
}

// Asset returns the manifest with all its values.
func (d Edit) Asset() Manifest {
	m := d.Manifest
	m.Values = Values{}
	maps.Copy(m.Values, d.Values)
	m.Values["namespace"] = func(ctx context.Context, e steps.Env) (any, error) {
		namespace, _, err := d.At(ctx, e)
		return namespace, err
	}
	m.Values["name"] = func(ctx context.Context, e steps.Env) (any, error) {
		_, name, err := d.At(ctx, e)
		return name, err
	}
	m.Values["text"] = func(ctx context.Context, e steps.Env) (any, error) { return d.Text(ctx, e) }
	m.Values["hash"] = func(ctx context.Context, e steps.Env) (any, error) {
		text, err := d.Text(ctx, e)
		return steps.HashOf(text), err
	}
	return m
}

// OthersStay implements the OthersStay interface. Until the link has written the key, the key belongs to another user,
// and other checks report what to do.
func (d Edit) OthersStay() {}

// Plan also reports whether someone has changed the key since carrick saved the previous text.
func (d Edit) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Asset().Plan(ctx, e)
	if err != nil {
		return c, err
	}
	live, err := d.live(ctx, e)
	if err != nil {
		return c, err
	}
	rewrite, err := d.rewritten(ctx, e, live)
	if err != nil {
		return c, err
	}
	if rewrite {
		if err := d.rebase(ctx, e, c.Items[0].Entry, live); err != nil {
			return c, err
		}
		c.Items[0].Note = steps.JoinNotes(
			c.Items[0].Note,
			"it was changed since carrick wrote it, for example by "+d.Again+": undo keeps the values that are not carrick's",
		)
	}
	if c.Items[0].Verb.Changes() {
		err = d.note(ctx, e, c.Items[0].Entry, live)
	}
	return c, err
}

// Do first adds the change to the text saved for undo if someone has changed the key since.
func (d Edit) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	live, err := d.live(ctx, e)
	if err != nil {
		return err
	}
	rewrite, err := d.rewritten(ctx, e, live)
	if err != nil {
		return err
	}
	if rewrite {
		inv, err := inventory.Of(ctx, e)
		if err != nil {
			return err
		}
		was := inv.Next(e, live, live)
		if err := d.rebase(ctx, e, was, live); err != nil {
			return err
		}
		if err := inventory.EnterOne(ctx, e, say, steps.Update, was); err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{inventory.BeforeAnnotation: nil, noteWritten: nil}},
		})
		if err != nil {
			return err
		}
		if _, err := e.Cluster.Patch(
			ctx, configMaps, live.GetNamespace(), live.GetName(), patch,
			cluster.PatchOptions{Manager: e.Manager(), UID: live.GetUID()},
		); err != nil {
			return err
		}
	}
	return d.Asset().Do(ctx, e, say)
}

// PlanUndo shows the text that undo restores.
func (d Edit) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Asset().PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	live, err := d.live(ctx, e)
	if errors.As(err, new(*steps.AbsentError)) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	for i := range c.Items {
		if c.Items[i].Verb != steps.Release || c.Items[i].What != inventory.Describe(live) {
			continue
		}
		if d.stale(live) || d.shared(live, e.Manager()) {
			var note string
			switch rest := d.rest(ctx, e, live, c.Items[i].Entry); {
			case rest == nil:
				note = "so it is kept; remove carrick's part manually: " + d.Hand(ctx, e)
			case d.standing(rest) == d.standing(live):
				note = "and contains none of carrick's settings, so it is kept"
			default:
				c.Items[i].Diff = diff.Objects(live, rest)
				note = "so undo restores only the settings that carrick set"
			}
			kept := strings.TrimSuffix(c.Items[i].Note, "; restores data."+d.Key) // of which the note says more
			c.Items[i].Note = steps.JoinNotes(kept, "the text was changed since carrick wrote it, "+note)
			continue
		}
		if then, ok := d.then(live, c.Items[i].Entry); ok {
			c.Items[i].Diff = diff.Objects(live, then)
			c.Items[i].Note = steps.JoinNotes(c.Items[i].Note, "restores the previous text")
		}
	}
	return c, nil
}

// Undo implements steps.Doer.
func (d Edit) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	live, err := d.live(ctx, e)
	if err != nil && !errors.As(err, new(*steps.AbsentError)) {
		return err
	}
	if err == nil && (d.stale(live) || d.shared(live, e.Manager())) {
		if err := d.takeBack(ctx, e, live); err != nil {
			return err
		}
	}
	return d.Asset().Undo(ctx, e, say)
}

// takeBack removes this link's settings from a text that someone else has changed since.
func (d Edit) takeBack(ctx context.Context, e steps.Env, live *unstructured.Unstructured) error {
	inv, err := inventory.Of(ctx, e)
	if err != nil {
		return err
	}
	f := findIn(inv, e.Action, inventory.MetadataOf(live), live.GroupVersionKind(), configMaps)
	rest := d.rest(ctx, e, live, f.entry)
	if rest == nil || d.standing(rest) == d.standing(live) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{d.Key: d.standing(rest)}})
	if err != nil {
		return err
	}
	_, err = e.Cluster.Patch(ctx, configMaps, live.GetNamespace(), live.GetName(), patch, cluster.PatchOptions{
		Manager: undoManager, UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(),
	})
	return err
}

// rest returns the ConfigMap without this link's settings in its text. entry is its inventory entry. rest returns nil
// if another link uses the ConfigMap, or if carrick can't tell its settings from others'.
func (d Edit) rest(
	ctx context.Context, e steps.Env, live *unstructured.Unstructured, entry *steps.Entry,
) *unstructured.Unstructured {
	if entry == nil {
		return nil
	}
	before, ok, _ := unstructured.NestedString(entry.Before, "data", d.Key)
	meta := inventory.MetadataOf(live)
	others, _, err := inventory.UsersOf(ctx, e, &meta)
	if !ok || err != nil || len(others) > 0 {
		return nil
	}
	want, err := d.Settings(ctx, e, d.standing(live))
	if err != nil {
		want = nil // undo might run without what the answers depend on
	}
	text, err := d.Without(d.standing(live), before, want, entry.Wrote)
	out := live.DeepCopy()
	if err != nil || unstructured.SetNestedField(out.Object, text, "data", d.Key) != nil {
		return nil
	}
	return out
}

// Export implements Exporter.
func (d Edit) Export(ctx context.Context, e steps.Env) ([]Exported, error) {
	return d.Asset().Export(ctx, e)
}

func (d Edit) live(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	namespace, name, err := d.At(ctx, e)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind("ConfigMap")
	obj.SetNamespace(namespace)
	obj.SetName(name)
	live, err := e.Cluster.Fetch(ctx, obj)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("ConfigMap %s/%s no longer exists", namespace, name)
	}
	return live, err
}

func (d Edit) standing(live *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(live.Object, "data", d.Key)
	return text
}

func (d Edit) stale(live *unstructured.Unstructured) bool {
	wrote := live.GetAnnotations()[noteWritten]
	return wrote != "" && wrote != steps.HashOf(d.standing(live))
}

// rewritten reports whether someone has changed the text since carrick wrote it and the new text is not the expected
// one. The text saved for undo then lacks that change.
func (d Edit) rewritten(ctx context.Context, e steps.Env, live *unstructured.Unstructured) (bool, error) {
	if !d.stale(live) {
		return false, nil
	}
	want, err := d.Text(ctx, e)
	return err == nil && want != d.standing(live), err
}

// shared reports whether another field manager also owns the text.
func (d Edit) shared(live *unstructured.Unstructured, manager string) bool {
	for _, f := range live.GetManagedFields() {
		if f.Manager != manager && steps.OwnsKey(f, d.Key) {
			return true
		}
	}
	return false
}

// note adds the settings that the link is about to change in the text to the inventory entry. After a changed answer,
// an undo recognizes by them the settings that the link wrote before.
func (d Edit) note(ctx context.Context, e steps.Env, entry *steps.Entry, live *unstructured.Unstructured) error {
	if entry == nil {
		return nil
	}
	want, err := d.Settings(ctx, e, d.standing(live))
	if err != nil {
		return err
	}
	now, err := d.Read(d.standing(live))
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if w := setting(key, want[key]); setting(key, now[key]) != w && !slices.Contains(entry.Wrote, w) {
			entry.Wrote = append(slices.Clone(entry.Wrote), w)
		}
	}
	return nil
}

// setting returns the hash that identifies a setting in an inventory entry.
func setting(key string, value any) string {
	if value == nil {
		value = ""
	}
	return steps.HashOf(fmt.Sprintf("%s: %v", key, value))
}

// rebase changes the text saved in the inventory entry, so that an undo removes only what this link wrote from the
// current text. Without a saved text, it saves the current text.
func (d Edit) rebase(ctx context.Context, e steps.Env, entry *steps.Entry, live *unstructured.Unstructured) error {
	if entry == nil {
		return nil
	}
	text := d.standing(live)
	if before, ok, _ := unstructured.NestedString(entry.Before, "data", d.Key); ok {
		want, err := d.Settings(ctx, e, text)
		if err != nil {
			return err
		}
		if text, err = d.Without(text, before, want, entry.Wrote); err != nil {
			return err
		}
	}
	old := runtime.DeepCopyJSON(entry.Before)
	if old == nil {
		old = map[string]any{}
	}
	if unstructured.SetNestedField(old, text, "data", d.Key) == nil {
		entry.Before = old
	}
	return nil
}

// Without returns text without the settings that this link wrote: those that are in want, and those with hashes in
// wrote. Each of them gets the value that it has in before.
func (d Edit) Without(text, before string, want map[string]any, wrote []string) (string, error) {
	now, err := d.Read(text)
	if err != nil {
		return "", err
	}
	was, err := d.Read(before)
	if err != nil {
		return "", err
	}
	mine := slices.Clone(wrote)
	for key, value := range want {
		mine = append(mine, setting(key, value))
	}
	all, back := maps.Clone(was), map[string]any{}
	maps.Copy(all, now)
	for key := range all {
		if !reflect.DeepEqual(now[key], was[key]) && slices.Contains(mine, setting(key, now[key])) {
			back[key] = was[key]
		}
	}
	if len(back) == 0 {
		return text, nil
	}
	return d.Set(text, back)
}

// then returns the ConfigMap as it was before carrick changed it. If that is unknown, the bool is false.
func (d Edit) then(live *unstructured.Unstructured, e *steps.Entry) (*unstructured.Unstructured, bool) {
	if e == nil {
		return nil, false
	}
	text, ok, _ := unstructured.NestedString(e.Before, "data", d.Key)
	out := live.DeepCopy()
	if !ok || unstructured.SetNestedField(out.Object, text, "data", d.Key) != nil {
		return nil, false
	}
	return out, true
}
