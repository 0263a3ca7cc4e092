package charts

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// inOrder lists kinds in the order of creation.
var inOrder = []string{
	"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "CSIDriver", "CustomResourceDefinition",
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service", "DaemonSet", "Deployment", "StatefulSet",
}

// Render renders the chart and its dependencies. It returns the objects, and the manifest for the release Secret.
func (c *Chart) Render(release, namespace string, values map[string]any) ([]*unstructured.Unstructured, string, error) {
	var objects []*unstructured.Unstructured
	err := c.render(release, namespace, merge(c.Values, values), &objects)
	if err != nil {
		return nil, "", fmt.Errorf("render chart %s: %w", c.Name, err)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(inOrder, a.GetKind()) - slices.Index(inOrder, b.GetKind())
	})
	var manifest strings.Builder
	for _, o := range objects {
		data, err := json.Marshal(o.Object)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(&manifest, "---\n%s\n", data)
	}
	return objects, manifest.String(), nil
}

func (c *Chart) render(release, namespace string, values map[string]any, objects *[]*unstructured.Unstructured) error {
	all := template.New(c.Name)
	all.Funcs(functions(all)).Option("missingkey=error")
	names := c.names("templates/")
	for _, name := range names {
		if _, err := all.New(name).Parse(string(c.Files[name])); err != nil {
			return err
		}
	}
	data := map[string]any{
		"Values":  values,
		"Chart":   map[string]any{"Name": c.Name, "Version": c.Version, "AppVersion": c.AppVersion},
		"Release": map[string]any{"Name": release, "Namespace": namespace, "Service": "Helm"},
	}
	for _, name := range names {
		if path.Ext(name) == ".tpl" {
			continue
		}
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, name, data); err != nil {
			return err
		}
		if err := decode(&out, objects); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, dependency := range c.Dependencies {
		if !dependency.wanted(values) {
			continue
		}
		theirs, _ := values[dependency.Name].(map[string]any)
		theirs = merge(dependency.Values, theirs)
		if err := dependency.render(release, namespace, theirs, objects); err != nil {
			return err
		}
	}
	return nil
}

func decode(in io.Reader, objects *[]*unstructured.Unstructured) error {
	decoder := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(object.Object) > 0:
			*objects = append(*objects, object)
		}
	}
}

// functions returns the template functions that the charts use.
func functions(all *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := all.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"toJson": func(value any) (string, error) {
			data, err := json.Marshal(value)
			return string(data), err
		},
		"default": func(otherwise, value any) any {
			if value == nil || value == "" {
				return otherwise
			}
			return value
		},
		"indent": func(n int, s string) string {
			pad := strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
		},
		"nindent": func(n int, s string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(s, "\n", pad)
		},
		"b64enc":     func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"quote":      func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"replace":    func(old, with, s string) string { return strings.ReplaceAll(s, old, with) },
		"trimSuffix": func(end, s string) string { return strings.TrimSuffix(s, end) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"tuple":      func(items ...any) []any { return items },
	}
}

// wanted reports whether the parent's values enable a dependency.
func (d Dependency) wanted(values map[string]any) bool {
	if d.Condition == "" {
		return true
	}
	wanted, _, _ := unstructured.NestedBool(values, strings.Split(d.Condition, ".")...)
	return wanted
}

// merge returns a copy of base in which the values in over take precedence. It merges nested maps.
func merge(base, over map[string]any) map[string]any {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		under, both := merged[key].(map[string]any)
		if isMap && both {
			value = merge(under, inner)
		}
		merged[key] = value
	}
	return merged
}
