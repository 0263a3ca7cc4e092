package interlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// restartDoer has the virtual kubelet start anew, once for each configuration.
type restartDoer struct{ steps.Manifest }

// restartedFor is the annotation in the pod template: its value is the hash of
// the configuration that the pods are to know.
func restartedFor(e steps.Env) string {
	const most = 63 // of the part after the slash
	name := "restarted." + e.Link
	return "carrick/" + name[:min(len(name), most)]
}

// Plan leaves a virtual kubelet alone that has started since.
func (d restartDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	dep, _, err := theKubelet(ctx, e)
	if apierrors.IsNotFound(err) {
		return steps.Change{}, steps.Absent("there is no Deployment %s/%s: InterLink's chart makes it", vkNamespace(e), vkDeployment(e))
	}
	if err != nil {
		return steps.Change{}, err
	}
	knows, err := knowsConfig(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	if knows {
		return steps.Change{Items: []steps.Item{{Verb: steps.Leave, What: "Deployment " + dep.Namespace + "/" + dep.Name, Note: "it has started since its configuration was written"}}}, nil
	}
	return d.Manifest.Plan(ctx, e)
}

// Do restarts it, unless it has started since.
func (d restartDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	knows, err := knowsConfig(ctx, e)
	if err != nil || knows {
		return err
	}
	return d.Manifest.Do(ctx, e, say)
}

// Export restarts with kubectl.
func (d restartDoer) Export(_ context.Context, e steps.Env) ([]steps.Exported, error) {
	k := e.Kubectl() + " -n " + vkNamespace(e)
	return []steps.Exported{{Hand: fmt.Sprintf("%s rollout restart deployment %s\n%s rollout status deployment %s --timeout=5m", k, vkDeployment(e), k, vkDeployment(e))}}, nil
}

// knowsConfig tells whether the virtual kubelet's pods started after the
// configuration was written as it is wanted.
func knowsConfig(ctx context.Context, e steps.Env) (bool, error) {
	text, err := standingConfig(ctx, e)
	if err != nil {
		return false, err
	}
	want, err := wantedConfig(ctx, e)
	if err != nil || want != text {
		return false, err
	}
	s, err := startsOf(ctx, e, hashOf(text))
	return err == nil && s.pods > 0 && len(s.old) == 0, err
}

// written is when the configuration came to be as it is, and its ConfigMap.
type written struct {
	changed time.Time
	made    metav1.Time // zero where the configuration is another one than at first
}

// starts is how the virtual kubelet's pods stand to a configuration.
type starts struct {
	written
	pods int
	old  []string // those that started before it, in words
}

// startsOf looks at the pods: one that was made for that configuration, or
// started after it, knows it.
func startsOf(ctx context.Context, e steps.Env, hash string) (starts, error) {
	var out starts
	pods, err := podsOfKubelet(ctx, e)
	if err != nil {
		return out, err
	}
	out.written, err = cluster.Look(ctx, "config-written/"+e.Cluster.Server()+"/"+vkNamespace(e)+"/"+vkConfigMap(e)+"/"+hash, 10*time.Second, func(ctx context.Context) (written, error) {
		return whenWritten(ctx, e)
	})
	if err != nil {
		return out, err
	}
	out.pods = len(pods)
	for _, p := range pods {
		began := p.Status.StartTime
		switch {
		case p.Annotations[restartedFor(e)] == hash:
		case began == nil:
			out.old = append(out.old, p.Name+" has not started yet")
		case began.After(out.changed), began.Equal(&out.made): // times have seconds; before it was made nothing started with it
		default:
			out.old = append(out.old, p.Name+" runs since "+began.UTC().Format(time.DateTime))
		}
	}
	return out, nil
}

// whenWritten is since when the configuration is as it is. Reads that are kept
// current leave out who wrote what.
func whenWritten(ctx context.Context, e steps.Env) (written, error) {
	found, err := e.Cluster.Find(ctx, check.ConfigMaps, vkNamespace(e), cluster.Selector{Fields: "metadata.name=" + vkConfigMap(e)})
	if err != nil {
		return written{}, err
	}
	if len(found) == 0 {
		return written{}, steps.Absent("there is no ConfigMap %s/%s any more", vkNamespace(e), vkConfigMap(e))
	}
	var first time.Time // whoever writes what stands already owns it, too, and changes nothing
	for _, f := range found[0].ManagedFields {
		if f.Time != nil && owns(f, "f:data", "f:"+configKey) && (first.IsZero() || f.Time.Time.Before(first)) {
			first = f.Time.Time
		}
	}
	made := found[0].CreationTimestamp
	switch {
	case first.IsZero():
		return written{made.Time, made}, nil
	case first.Equal(made.Time):
		return written{first, made}, nil
	}
	return written{changed: first}, nil
}

func owns(f metav1.ManagedFieldsEntry, path ...string) bool {
	var set map[string]any
	if f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &set) != nil {
		return false
	}
	for _, key := range path {
		inner, ok := set[key].(map[string]any)
		if !ok {
			return false
		}
		set = inner
	}
	return true
}
