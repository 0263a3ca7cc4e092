package action

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/masked"
	"carrick/steps"
)

// Placeholder matches ${scope.name}. The scopes are own, peer, answers, link, values and each.
var Placeholder = regexp.MustCompile(`\$\{([a-z]+)(?:\.([A-Za-z0-9._-]+))?\}`)

// scope resolves the placeholders of an asset. If an answer was left empty, its value is nil and the key that contains
// the placeholder is dropped.
type scope struct {
	env    steps.Env
	values Values
	each   any
	secret bool // masked values are permitted because this is a value of a Secret
}

// Values are the computed values of a Manifest. ${values.name} refers to the value called name. A nil value drops the
// key that contains the placeholder. A masked.Value is permitted only in data and stringData of a Secret.
type Values map[string]func(context.Context, steps.Env) (any, error)

func (s scope) lookup(ctx context.Context, where, name string) (any, error) {
	switch where {
	case "own":
		return s.env.Own.Value(name)
	case "peer":
		return s.env.Peer.Value(name)
	case "answers":
		return s.env.Answers.Value(name), nil
	case "link":
		if name == "name" {
			return s.env.Link, nil
		}
	case "values":
		if f := s.values[name]; f != nil {
			return f(ctx, s.env)
		}
	case "each":
		if name == "" {
			return s.each, nil
		}
		if m, ok := s.each.(map[string]any); ok {
			if v, ok := m[name]; ok {
				return v, nil
			}
		}
	}
	return nil, fmt.Errorf("${%s} is not defined", strings.TrimSuffix(where+"."+name, "."))
}

// Documents parses an asset into its YAML documents. This happens before any substitution, so that no answer can inject
// structure.
func Documents(assets fs.FS, file string) ([]map[string]any, error) {
	data, err := fs.ReadFile(assets, file)
	if err != nil {
		return nil, fmt.Errorf("read asset: %w", err)
	}
	var out []map[string]any
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc map[string]any
		err := dec.Decode(&doc)
		if err != nil {
			if err.Error() == "EOF" {
				return out, nil
			}
			return nil, fmt.Errorf("asset %s: %w", file, err)
		}
		if doc != nil {
			out = append(out, doc)
		}
	}
}

func render(ctx context.Context, file string, s scope) ([]*unstructured.Unstructured, error) {
	docs, err := Documents(s.env.Assets, file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, doc := range docs {
		obj, err := s.object(ctx, doc)
		if err != nil {
			return nil, fmt.Errorf("asset %s: %w", file, err)
		}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" || obj.GetName() == "" {
			return nil, fmt.Errorf("asset %s: an object has no apiVersion, kind or name", file)
		}
		out = append(out, obj)
	}
	return out, nil
}

// object substitutes the placeholders of one document. Masked values are permitted only in the values of a Secret.
// stringData is converted to data. The API server detects no conflicts in stringData, and an undo could not find its
// own fields in it.
func (s scope) object(ctx context.Context, doc map[string]any) (*unstructured.Unstructured, error) {
	if doc["kind"] != "Secret" || doc["apiVersion"] != "v1" {
		v, err := s.mapping(ctx, doc)
		return &unstructured.Unstructured{Object: v}, err
	}
	open, values := map[string]any{}, map[string]any{}
	for k, v := range doc {
		if k == "data" || k == "stringData" {
			values[k] = v
		} else {
			open[k] = v
		}
	}
	out, err := s.mapping(ctx, open)
	if err != nil {
		return nil, err
	}
	s.secret = true
	hidden, err := s.mapping(ctx, values)
	if err != nil {
		return nil, err
	}
	data, err := secretData(hidden)
	if len(data) > 0 {
		out["data"] = data
	}
	return &unstructured.Unstructured{Object: out}, err
}

func secretData(values map[string]any) (map[string]any, error) {
	out := map[string]any{}
	data, _ := values["data"].(map[string]any)
	maps.Copy(out, data)
	text, _ := values["stringData"].(map[string]any)
	for k, v := range text {
		t, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("the value of %q is not a string", k)
		}
		out[k] = base64.StdEncoding.EncodeToString([]byte(t))
	}
	return out, nil
}

// errDrop is returned for a placeholder without a value. The caller then drops the key or list item that contains the
// placeholder.
var errDrop = errors.New("drop")

func (s scope) substitute(ctx context.Context, v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return s.mapping(ctx, v)
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			got, err := s.substitute(ctx, item)
			if errors.Is(err, errDrop) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, got)
		}
		return out, nil
	case string:
		return s.scalar(ctx, v)
	case int:
		return int64(v), nil // unstructured content uses int64
	default:
		return v, nil
	}
}

func (s scope) mapping(ctx context.Context, m map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(m))
	open := s
	open.secret = false // keys are shown
	for k, item := range m {
		key, err := open.scalar(ctx, k)
		if errors.Is(err, errDrop) {
			continue
		}
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("key %q evaluates to a %T", k, key)
		}
		got, err := s.substitute(ctx, item)
		if errors.Is(err, errDrop) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("key %q occurs twice", name)
		}
		out[name] = got
	}
	return out, nil
}

// scalar substitutes the placeholders of one string. If a placeholder is the whole string, its value can have any type.
// Otherwise its value must be a scalar.
func (s scope) scalar(ctx context.Context, text string) (any, error) {
	found := Placeholder.FindStringSubmatch(text)
	if found == nil {
		return text, nil
	}
	if found[0] == text {
		v, err := s.lookup(ctx, found[1], found[2])
		if err != nil {
			return nil, err
		}
		return s.whole(text, v)
	}
	var failed error
	out := Placeholder.ReplaceAllStringFunc(text, func(p string) string {
		m := Placeholder.FindStringSubmatch(p)
		v, err := s.lookup(ctx, m[1], m[2])
		if err == nil {
			v, err = s.whole(p, v)
		}
		switch v.(type) {
		case string, int64, bool:
		default:
			if err == nil {
				err = fmt.Errorf("%s is a %T inside other text", p, v)
			}
		}
		if err != nil && failed == nil {
			failed = err
		}
		return fmt.Sprint(v)
	})
	return out, failed
}

func (s scope) whole(text string, v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, errDrop
	case masked.Value:
		if !s.secret {
			return nil, fmt.Errorf("%s is secret and the object is not a Secret", text)
		}
		return v.Reveal(), nil
	case int:
		return int64(v), nil
	case []string:
		out := make([]any, len(v))
		for i := range v {
			out[i] = v[i]
		}
		return out, nil
	case map[string]string:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = v[k]
		}
		return out, nil
	case string, int64, bool, float64, []any, map[string]any:
		return v, nil
	default:
		return nil, fmt.Errorf("%s is a %T, which a manifest cannot contain", text, v)
	}
}
