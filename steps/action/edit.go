package action

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

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

// Edit writes one key of a ConfigMap that is somebody else's, such as a chart's.
// Whoever made it owns the key, so taking it over is asked for; undo puts back
// what stood there, unless somebody has written it since.
//
// The asset is that ConfigMap with the key alone, and the annotation
// carrick/config-written: ${values.hash}. The values namespace, name, text and
// hash are Edit's own.
type Edit struct {
	Manifest
	Key string
	// At is where the ConfigMap stands. An AbsentError says that it does not, and
	// who makes it.
	At func(context.Context, steps.Env) (namespace, name string, err error)
	// Text is what the key is to be.
	Text func(context.Context, steps.Env) (string, error)
	// Again says what writes it anew now and then: "a helm upgrade".
	Again string
	// Hand is how to take out by hand what carrick wrote, where an undo can't.
	Hand func(context.Context, steps.Env) string
}

// Asset is the manifest with all its values.
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

// OthersStay marks Edit as an OthersStay: until the link has written the key, it belongs to another user, and the
// checks say what to do with it.
func (d Edit) OthersStay() {}

// Plan says when something else is written there since than what is kept for
// undo.
func (d Edit) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Asset().Plan(ctx, e)
	if err != nil {
		return c, err
	}
	live, err := d.live(ctx, e)
	if err != nil {
		return c, err
	}
	if anew, err := d.rewritten(ctx, e, live); err != nil {
		return c, err
	} else if anew {
		d.keepsNow(c.Items[0].Entry, live)
		c.Items[0].Note = steps.JoinNotes(
			c.Items[0].Note,
			"somebody has written it anew since carrick did, such as "+d.Again+": what stands now is what an undo puts back",
		)
	}
	return c, nil
}

// Do forgets what was kept of a text that somebody has written anew since.
func (d Edit) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	live, err := d.live(ctx, e)
	if err != nil {
		return err
	}
	anew, err := d.rewritten(ctx, e, live)
	if err != nil {
		return err
	}
	if anew {
		inv, err := inventory.Of(ctx, e)
		if err != nil {
			return err
		}
		was := inv.Next(e, live, live)
		d.keepsNow(was, live)
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

// PlanUndo shows what comes back.
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
			c.Items[i].Note = steps.JoinNotes(
				c.Items[i].Note,
				"somebody has written it since carrick did: their text stays; take what carrick wrote out of it by hand: "+
					d.Hand(ctx, e),
			)
			continue
		}
		if then, ok := d.then(live, c.Items[i].Entry); ok {
			c.Items[i].Diff = diff.Objects(live, then)
			c.Items[i].Note = steps.JoinNotes(c.Items[i].Note, "what stood there comes back")
		}
	}
	return c, nil
}

// Undo is the manifest's: values that were taken over come back.
func (d Edit) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	return d.Asset().Undo(ctx, e, say)
}

// Export is the manifest's.
func (d Edit) Export(ctx context.Context, e steps.Env) ([]Exported, error) {
	return d.Asset().Export(ctx, e)
}

// live is the ConfigMap as it is now.
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
		return nil, steps.Absent("there is no ConfigMap %s/%s any more", namespace, name)
	}
	return live, err
}

func (d Edit) standing(live *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(live.Object, "data", d.Key)
	return text
}

// stale tells whether somebody has written the text anew since carrick did.
func (d Edit) stale(live *unstructured.Unstructured) bool {
	wrote := live.GetAnnotations()[noteWritten]
	return wrote != "" && wrote != steps.HashOf(d.standing(live))
}

// rewritten tells whether somebody has written the text anew since, and without
// what it has to say: what is kept for undo is of no use then.
func (d Edit) rewritten(ctx context.Context, e steps.Env, live *unstructured.Unstructured) (bool, error) {
	if !d.stale(live) {
		return false, nil
	}
	want, err := d.Text(ctx, e)
	return err == nil && want != d.standing(live), err
}

// shared tells whether anybody but a manager owns the text.
func (d Edit) shared(live *unstructured.Unstructured, manager string) bool {
	for _, f := range live.GetManagedFields() {
		if f.Manager != manager && steps.OwnsKey(f, d.Key) {
			return true
		}
	}
	return false
}

// keepsNow has an entry keep the text that is there now, and no earlier one.
func (d Edit) keepsNow(e *steps.Entry, live *unstructured.Unstructured) {
	if e == nil {
		return
	}
	old := runtime.DeepCopyJSON(e.Before)
	if old == nil {
		old = map[string]any{}
	}
	if unstructured.SetNestedField(old, d.standing(live), "data", d.Key) == nil {
		e.Before = old
	}
}

// then is the ConfigMap as it was before carrick.
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
