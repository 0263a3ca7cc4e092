package interlink

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	noteWritten = "carrick/config-written" // hash of the text that carrick wrote
	noteBefore  = "carrick/before"         // what the engine keeps of somebody else's
)

// hashOf tells one configuration from another.
func hashOf(text string) string { return strings.TrimPrefix(cluster.Mask(text).Hash(), "sha256:") }

// configDoer edits one key of a ConfigMap that is the chart's. Helm owns it, so
// taking it over is asked for; what stood there comes back with undo.
type configDoer struct{ steps.Manifest }

// Plan says when something else is written there since than what is kept for
// undo.
func (d configDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	live, err := liveConfig(ctx, e)
	if err != nil {
		return c, err
	}
	if anew, err := rewritten(ctx, e, live); err != nil {
		return c, err
	} else if anew {
		c.Items[0].Note = join(c.Items[0].Note, "somebody has written it anew since carrick did, such as a helm upgrade: what stands now is what an undo puts back")
	}
	if text, _, _ := unstructured.NestedString(live.Object, "data", configKey); chartBug(text) {
		c.Items[0].Note = join(c.Items[0].Note, "the chart has its CA indented wrongly: that is put right")
	}
	return c, nil
}

// Do forgets what was kept of a text that somebody has written anew since.
func (d configDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	live, err := liveConfig(ctx, e)
	if err != nil {
		return err
	}
	anew, err := rewritten(ctx, e, live)
	if err != nil {
		return err
	}
	if anew {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{noteBefore: nil, noteWritten: nil}}})
		if err != nil {
			return err
		}
		if _, err := e.Cluster.Patch(ctx, check.ConfigMaps, live.GetNamespace(), live.GetName(), patch, cluster.PatchOptions{Manager: e.Manager(), UID: live.GetUID()}); err != nil {
			return err
		}
	}
	return d.Manifest.Do(ctx, e, say)
}

// PlanUndo shows what comes back.
func (d configDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	live, err := liveConfig(ctx, e)
	if errors.As(err, new(*steps.AbsentError)) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	for i := range c.Items {
		if c.Items[i].Verb != steps.Release || !strings.HasSuffix(c.Items[i].What, " "+live.GetNamespace()+"/"+live.GetName()) {
			continue
		}
		if stale(live) || sharedWith(live, e.Manager()) {
			c.Items[i].Note = join(c.Items[i].Note, "somebody has written it since carrick did: their text stays; take the endpoint out of it by hand: "+editByHand(e))
			continue
		}
		if then, ok := keptConfig(live); ok {
			c.Items[i].Diff = cluster.Diff(live, then)
			c.Items[i].Note = join(c.Items[i].Note, "what stood there comes back")
		}
	}
	return c, nil
}

// Export gives the chart's values, for those who install with tools of their
// own, and what the values can't do.
func (d configDoer) Export(ctx context.Context, e steps.Env) ([]steps.Exported, error) {
	return exportConfig(ctx, e)
}

// liveConfig is the ConfigMap as it is now.
func liveConfig(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind("ConfigMap")
	obj.SetNamespace(vkNamespace(e))
	obj.SetName(vkConfigMap(e))
	live, err := e.Cluster.Fetch(ctx, obj)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("there is no ConfigMap %s/%s: InterLink's chart makes it", vkNamespace(e), vkConfigMap(e))
	}
	return live, err
}

// stale tells whether somebody has written the text anew since carrick did.
func stale(live *unstructured.Unstructured) bool {
	wrote := live.GetAnnotations()[noteWritten]
	text, _, _ := unstructured.NestedString(live.Object, "data", configKey)
	return wrote != "" && wrote != hashOf(text)
}

// rewritten tells whether somebody has written the text anew since, and without
// what it has to say: what is kept for undo is of no use then.
func rewritten(ctx context.Context, e steps.Env, live *unstructured.Unstructured) (bool, error) {
	if !stale(live) {
		return false, nil
	}
	text, _, _ := unstructured.NestedString(live.Object, "data", configKey)
	want, err := wantedConfig(ctx, e)
	return err == nil && want != text, err
}

// sharedWith tells whether anybody but a manager owns the text.
func sharedWith(live *unstructured.Unstructured, manager string) bool {
	for _, f := range live.GetManagedFields() {
		if f.Manager != manager && owns(f, "f:data", "f:"+configKey) {
			return true
		}
	}
	return false
}

// keptConfig is the ConfigMap as it was before carrick.
func keptConfig(live *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	var old map[string]any
	if json.Unmarshal([]byte(live.GetAnnotations()[noteBefore]), &old) != nil {
		return nil, false
	}
	text, ok, _ := unstructured.NestedString(old, "data", configKey)
	then := live.DeepCopy()
	if !ok || unstructured.SetNestedField(then.Object, text, "data", configKey) != nil {
		return nil, false
	}
	return then, true
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
