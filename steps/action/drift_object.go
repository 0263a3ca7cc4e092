package action

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/inventory"
)

// driftAge is how long a dry-run result is cached. The cache key contains the sent object and the existing object. A
// cached result becomes outdated only if the API server's defaults change.
const driftAge = 24 * time.Hour

// refusedAge is how long a rejected dry run is cached.
const refusedAge = 5 * time.Minute

// liveOf reads the existing object without the cache. It returns nil if the object does not exist. It omits
// managedFields. In a Secret, only the values of obj's own keys and of the keys in more are readable.
func liveOf(
	ctx context.Context, env steps.Env, obj *unstructured.Unstructured, more ...string,
) (*unstructured.Unstructured, error) {
	gvr, _, err := env.Cluster.Resource(ctx, obj.GroupVersionKind())
	if errors.Is(err, failure.ErrNotServed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s *cluster.Secret
	if inventory.IsSecret(obj) { // must precede Get, which masks the values
		keys, err := secretKeys(obj)
		if err != nil {
			return nil, err
		}
		s, err = env.Cluster.Secret(ctx, obj.GetNamespace(), obj.GetName(), append(keys, more...)...)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	live, err := env.Cluster.Get(ctx, gvr, obj.GetNamespace(), obj.GetName())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || s == nil {
		return live, err
	}
	live = live.DeepCopy()
	data, _, _ := unstructured.NestedMap(live.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range s.Data {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value.Reveal()))
	}
	if len(data) > 0 {
		live.Object["data"] = data
	}
	return live, nil
}

// same reports whether an object has exactly the wanted content, so that no dry run is required. It ignores labels and
// annotations of other users.
func same(want, live *unstructured.Unstructured) bool {
	a, b := plain(want), plain(live)
	if a == nil || b == nil {
		return false
	}
	for _, field := range []string{"labels", "annotations"} {
		wanted, _, _ := unstructured.NestedMap(a, "metadata", field)
		have, _, _ := unstructured.NestedMap(b, "metadata", field)
		for key, v := range wanted {
			if have[key] != v {
				return false
			}
		}
	}
	if want.GetKind() == "Namespace" { // the API server adds these to every Namespace
		delete(b, "spec")
	}
	delete(a, "metadata")
	delete(b, "metadata")
	return reflect.DeepEqual(a, b)
}

// plain returns the object without its status, or nil if the conversion fails. Numbers have JSON's types.
func plain(o *unstructured.Unstructured) map[string]any {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil
	}
	var out map[string]any
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	delete(out, "status")
	return out
}

type dryRunResult struct {
	fields   []string // fields that would change
	taken    bool     // another manager owns some of the fields
	replaced bool     // the object would have to be recreated; fields then lists the sent fields that differ
	first    string   // what to do before apply can revert the change, or ""
	refused  string   // why the API server rejected the dry run
}

func (t dryRunResult) flags() []string {
	if t.taken {
		return []string{"--take-over"}
	}
	return nil
}

func tryApply(
	ctx context.Context, env steps.Env, want, live *unstructured.Unstructured, whole bool,
) (dryRunResult, error) {
	want = want.DeepCopy()
	inventory.SetOwnership(env, want, live)
	opts := cluster.ApplyOptions{Manager: env.Manager(), DryRun: true}
	kept, err := env.Cluster.Apply(ctx, want, opts)
	var t dryRunResult
	if len(failure.Conflicts(err)) > 0 {
		t.taken, opts.Force = true, true
		kept, err = env.Cluster.Apply(ctx, want, opts)
	}
	switch {
	case apierrors.IsInvalid(err):
		p := planned{Item: steps.Item{What: inventory.Describe(want)}, want: want}
		if byAdmissionPolicy(err) || !p.replaceable(ctx, env) {
			t.refused = failure.Explain(err)
			return t, nil
		}
		t.replaced, t.fields = true, sentFields(want, live)
		return t, nil
	case denied(err):
		t.refused = failure.Explain(err)
		return t, nil
	case err != nil:
		return t, err
	}
	t.fields = changedFields(want, live, kept, whole)
	if keys := dataKeys(live, t.fields); t.taken && inventory.IsSecret(live) && len(keys) > 0 {
		t.first = saveSecret(env, live, keys)
	}
	return t, nil
}

// byAdmissionPolicy reports whether a policy rejected an object. It matches the policy's own message, because other
// errors of the API server can contain the kind ValidatingAdmissionPolicyBinding.
func byAdmissionPolicy(err error) bool {
	return strings.Contains(err.Error(), "ValidatingAdmissionPolicy '")
}

// sentFields returns the fields whose values differ from the wanted values. It is used when the API server rejected the
// dry run, so the merged result is unknown. For example, server-side apply keeps other managers' elements of a set such
// as validationActions, and the API server can reject the combination.
func sentFields(want, live *unstructured.Unstructured) []string {
	return slices.DeleteFunc(changedFields(want, live, want, true), func(field string) bool {
		return strings.HasSuffix(field, wasAdded) // a default of the API server, or added by another user
	})
}

// dataKeys returns the data keys of a Secret among the changed fields.
func dataKeys(live *unstructured.Unstructured, fields []string) []string {
	have, _, _ := unstructured.NestedMap(live.Object, "data")
	return slices.DeleteFunc(
		slices.Sorted(maps.Keys(have)), func(key string) bool { return !slices.Contains(fields, under("data", key)) },
	)
}

// saveSecret returns commands that save the values that another user wrote into a Secret and then remove them. An apply
// would not overwrite these values.
func saveSecret(env steps.Env, live *unstructured.Unstructured, keys []string) string {
	var ops []steps.PatchOp
	for _, key := range keys {
		ops = append(ops, steps.PatchOp{Op: "remove", Path: steps.Pointer("data", key)})
	}
	at, name := env.Kubectl()+" -n "+steps.Quoted(live.GetNamespace()), steps.Quoted(live.GetName())
	return fmt.Sprintf("(umask 077; %s get secret %s -o yaml > %s.before.yaml) && %s patch secret %s %s",
		at, name, name, at, name, steps.JSONPatch(ops...))
}

// keepData copies the existing values of generated keys into the wanted Secret.
func keepData(want, live *unstructured.Unstructured, keys []string) {
	have, _, _ := unstructured.NestedMap(live.Object, "data")
	data := map[string]any{}
	for _, key := range keys {
		if v, is := have[key]; is {
			data[key] = v
		}
	}
	want.Object["data"] = data
}

// changedFields returns the fields that an apply would change. It adds the current and the future value if both are
// short and not secret. If whole is true, it also returns missing fields. In a Secret it compares only the wanted keys
// and annotations, because the other values are masked.
func changedFields(want, live, kept *unstructured.Unstructured, whole bool) []string {
	a, b := comparison(want, live), comparison(want, kept)
	f := fields{secret: inventory.IsSecret(live), whole: whole}
	f.compare("", a, b)
	return f.out
}

func comparison(want, o *unstructured.Unstructured) any {
	out := bare(o)
	for _, field := range []string{"uid", "creationTimestamp", "selfLink", "deletionTimestamp"} {
		unstructured.RemoveNestedField(out, "metadata", field)
	}
	if inventory.IsSecret(o) {
		for _, at := range [][]string{{"data"}, {"metadata", "annotations"}} {
			wanted, _, _ := unstructured.NestedMap(want.Object, at...)
			have, _, _ := unstructured.NestedMap(out, at...)
			maps.DeleteFunc(have, func(key string, _ any) bool { _, is := wanted[key]; return !is })
			unstructured.RemoveNestedField(out, at...)
			if len(have) > 0 {
				_ = unstructured.SetNestedMap(out, have, at...)
			}
		}
	}
	return plain(&unstructured.Unstructured{Object: out})
}

type fields struct {
	secret, whole bool
	out           []string
}

func (f *fields) compare(at string, is, would any) {
	switch was := is.(type) {
	case map[string]any:
		if now, both := would.(map[string]any); both {
			for _, key := range slices.Sorted(maps.Keys(union(was, now))) {
				f.compare(under(at, key), was[key], now[key])
			}
			return
		}
	case []any:
		if now, both := would.([]any); both && len(was) == len(now) {
			for i := range was {
				f.compare(at+"["+strconv.Itoa(i)+"]", was[i], now[i])
			}
			return
		}
		if now, both := would.([]any); both && f.compareNamed(at, was, now) {
			return
		}
	}
	if reflect.DeepEqual(is, would) || is == nil && !f.whole {
		return
	}
	f.out = append(f.out, at+f.values(at, is, would))
}

// compareNamed compares lists of different lengths by the names of their elements. If an element has no name, it
// returns false. It also reports missing elements that carrick did not create.
func (f *fields) compareNamed(at string, is, would []any) bool {
	was, now := namedIn(is), namedIn(would)
	if len(was) != len(is) || len(now) != len(would) {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(union(was, now))) {
		at := at + "[" + clean.Name(name) + "]"
		if was[name] == nil {
			f.out = append(f.out, at+f.values(at, nil, now[name]))
			continue
		}
		f.compare(at, was[name], now[name])
	}
	return true
}

// namedIn maps list elements by name. It omits elements without a name.
func namedIn(list []any) map[string]any {
	out := map[string]any{}
	for _, v := range list {
		if name := nameOf(v); name != "" {
			out[name] = v
		}
	}
	return out
}

func under(at, key string) string {
	if strings.ContainsAny(key, "./") {
		key = "[" + key + "]"
		return clean.Name(at + key)
	}
	return clean.Name(strings.TrimPrefix(at+"."+key, "."))
}

func union(a, b map[string]any) map[string]bool {
	out := map[string]bool{}
	for key := range a {
		out[key] = true
	}
	for key := range b {
		out[key] = true
	}
	return out
}

// These limits are in characters.
const (
	longestValue = 40
	longestImage = 160
)

const wasAdded = " was added"

func (f *fields) values(at string, is, would any) string {
	if f.secret {
		return ""
	}
	longest := longestValue
	if strings.HasSuffix(at, ".image") {
		longest = longestImage
	}
	was, now := shownValue(is, longest), shownValue(would, longest)
	switch {
	case is == nil:
		return " is missing"
	case would == nil:
		return wasAdded
	case was == "" || now == "":
		return ""
	}
	return " is " + was + " instead of " + now
}

// shownValue returns a scalar as text, or "" if v is not a scalar or is longer than longest.
func shownValue(v any, longest int) string {
	switch v.(type) {
	case map[string]any, []any:
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil || len(text) > longest {
		return ""
	}
	return cmp.Or(clean.Name(strings.Trim(string(text), `"`)), `""`)
}

// secretKeys returns the keys that the Secret sets in data and stringData.
func secretKeys(obj *unstructured.Unstructured) ([]string, error) {
	var out []string
	for _, field := range []string{"data", "stringData"} {
		values, _, err := unstructured.NestedMap(obj.Object, field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", inventory.Describe(obj), err)
		}
		for key := range values {
			if !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out, nil
}
