package action

import (
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/masked"
	"carrick/cluster/permission"
	"carrick/steps"
)

const hiddenValue = "(hidden)"

// revealed returns the values for Helm, the values with secrets hidden, and the secrets.
func revealed(values map[string]any) (plain, open map[string]any, secrets []string) {
	plain, open = map[string]any{}, map[string]any{}
	for k, v := range values {
		var more []string
		plain[k], open[k], more = reveal(v)
		secrets = append(secrets, more...)
	}
	return plain, open, secrets
}

func reveal(v any) (plain, open any, secrets []string) {
	switch v := v.(type) {
	case masked.Value:
		return v.Reveal(), hiddenValue, []string{v.Reveal()}
	case map[string]any:
		return asAny(revealed(v))
	case []any:
		p, o := make([]any, len(v)), make([]any, len(v))
		for i := range v {
			var more []string
			p[i], o[i], more = reveal(v[i])
			secrets = append(secrets, more...)
		}
		return p, o, secrets
	case map[string]string:
		m := make(map[string]any, len(v))
		for k := range v {
			m[k] = v[k]
		}
		return m, m, nil
	case []string:
		l := make([]any, len(v))
		for i := range v {
			l[i] = v[i]
		}
		return l, l, nil
	case int:
		return int64(v), int64(v), nil
	}
	return v, v, nil
}

func asAny(plain, open map[string]any, secrets []string) (any, any, []string) {
	return plain, open, secrets
}

// hide removes secrets from plan items. A template can write a secret into any field.
func hide(items []steps.Item, secrets []string) {
	r := scrubber(secrets)
	for i := range items {
		items[i].Diff, items[i].Note = r.Replace(items[i].Diff), r.Replace(items[i].Note)
	}
}

// scrubber replaces secrets, including their base64 form. It ignores secrets shorter than four bytes, because they
// would match parts of other words.
func scrubber(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		if len(s) >= 4 {
			pairs = append(pairs, s, hiddenValue, base64.StdEncoding.EncodeToString([]byte(s)), hiddenValue)
		}
	}
	return strings.NewReplacer(pairs...)
}

// scrubbed removes secrets from the message of err. The result still wraps err.
func scrubbed(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	if text := scrubber(secrets).Replace(err.Error()); text != err.Error() {
		return fmt.Errorf("%s", text)
	}
	return err
}

func shownRelease(name, version string, values map[string]any) *unstructured.Unstructured {
	o := map[string]any{"chart": name, "version": version}
	if len(values) > 0 {
		o["values"] = jsonValue(values)
	}
	return &unstructured.Unstructured{Object: o}
}

// oldRelease returns the existing release, or nil if there is none. It contains only non-secret values that this link
// would also set. carrick cannot know which of the other values are secret.
func oldRelease(s standing, want wanted) *unstructured.Unstructured {
	if s.Old == nil {
		return nil
	}
	return shownRelease(s.Old.Chart, s.Old.Version, sharedValues(s.Old.Given, want.open, ""))
}

func sharedValues(given func(string) (any, bool), open map[string]any, at string) map[string]any {
	out := map[string]any{}
	for key, v := range open {
		path := at + strings.ReplaceAll(key, ".", `\.`)
		if table, ok := v.(map[string]any); ok && len(table) > 0 {
			if under := sharedValues(given, table, path+"."); len(under) > 0 {
				out[key] = under
			}
			continue
		}
		old, ok := given(path)
		if !ok {
			continue
		}
		switch old.(type) {
		case string, bool, float64, int64:
			if v != hiddenValue {
				out[key] = old
				continue
			}
		}
		out[key] = hiddenValue
	}
	return out
}

// jsonValue converts v to the types that unstructured.Unstructured allows.
func jsonValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = jsonValue(v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = jsonValue(v[i])
		}
		return out
	case nil, string, bool, int64, float64:
		return v
	}
	return fmt.Sprint(v)
}

func rightToDelete(o *unstructured.Unstructured, gvr schema.GroupVersionResource) permission.Rule {
	return permission.Rule{
		Verb: "delete", Group: gvr.Group, Resource: gvr.Resource, Namespace: o.GetNamespace(), Name: o.GetName(),
	}
}
