package world

import (
	"bytes"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed base scenarios shared
var files embed.FS

// about is the name of the file with a fault's description, which is one sentence.
const about = "about.txt"

// Values contains the values for ${name} in YAML. A value is a string, or a number if ${name} is the whole scalar.
type Values map[string]any

// Scenarios returns the names of all scenarios.
func Scenarios() []string { return folders("scenarios") }

// Faults returns the descriptions of a scenario's faults, by name.
func Faults(scenario string) (map[string]string, error) {
	faults := map[string]string{}
	for _, name := range folders(path.Join("scenarios", scenario, "faults")) {
		text, err := files.ReadFile(path.Join("scenarios", scenario, "faults", name, about))
		if err != nil {
			return nil, err
		}
		faults[name] = strings.TrimSpace(string(text))
	}
	return faults, nil
}

// settings is a kind that exists only in this package's YAML. It sets values for ${…} on one side. A fault's value
// replaces the scenario's value.
const settings = "Values"

// Scenario returns the objects of one side. Objects in the directory both come before objects in the side's directory.
// A fault's object replaces the scenario's object with the same name.
func Scenario(scenario, side string, faults []string, values Values) ([]*unstructured.Unstructured, error) {
	top := path.Join("scenarios", scenario)
	sets := []string{top}
	for _, fault := range faults {
		sets = append(sets, path.Join(top, "faults", fault))
	}
	var objects []*unstructured.Unstructured
	values = maps.Clone(values)
	if values == nil {
		values = Values{}
	}
	for _, set := range sets {
		for _, folder := range []string{path.Join(set, "both"), path.Join(set, side)} {
			found, err := parsed(folder)
			if err != nil {
				return nil, err
			}
			if found, err = withShared(found); err != nil {
				return nil, fmt.Errorf("%s: %w", folder, err)
			}
			if found, err = take(found, values); err != nil {
				return nil, fmt.Errorf("%s: %w", folder, err)
			}
			objects = Overlay(objects, found)
		}
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return space(b) - space(a) })
	return objects, complete(objects, values)
}

// take adds the values from objects of the kind settings to values, and returns all other objects.
func take(objects []*unstructured.Unstructured, values Values) ([]*unstructured.Unstructured, error) {
	var others []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() != settings {
			others = append(others, o)
			continue
		}
		given, _, err := unstructured.NestedMap(o.Object, "values")
		if err != nil {
			return nil, err
		}
		if err := fill(given, values); err != nil {
			return nil, err
		}
		maps.Copy(values, given)
	}
	return others, nil
}

// space returns 1 for a Namespace and 0 otherwise. It is a sort key, because a Namespace must be created before its
// objects.
func space(o *unstructured.Unstructured) int {
	if o.GetKind() == "Namespace" {
		return 1
	}
	return 0
}

// Overlay returns objects with over applied. An object in over replaces the object with the same name. New objects are
// appended.
func Overlay(objects, over []*unstructured.Unstructured) []*unstructured.Unstructured {
	type identity struct{ kind, namespace, name string }
	of := func(o *unstructured.Unstructured) identity {
		return identity{o.GroupVersionKind().GroupKind().String(), o.GetNamespace(), o.GetName()}
	}
	places := map[identity]int{}
	for i, o := range objects {
		places[of(o)] = i
	}
	for _, o := range over {
		if i, ok := places[of(o)]; ok {
			objects[i] = o
		} else {
			objects = append(objects, o)
		}
	}
	return objects
}

// Without returns the objects that are not in others. It compares kind, namespace and name.
func Without(objects, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(others, func(by *unstructured.Unstructured) bool {
			return o.GroupVersionKind().GroupKind() == by.GroupVersionKind().GroupKind() &&
				o.GetNamespace() == by.GetNamespace() && o.GetName() == by.GetName()
		})
	})
}

func folders(parent string) []string {
	entries, err := files.ReadDir(parent)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// read returns the objects in a directory, in the order of the file names. It returns none if the directory does not
// exist.
func read(folder string, values Values) ([]*unstructured.Unstructured, error) {
	objects, err := parsed(folder)
	if err != nil {
		return nil, err
	}
	return objects, complete(objects, values)
}

// complete replaces ${…} in objects and normalizes them.
func complete(objects []*unstructured.Unstructured, values Values) error {
	for _, o := range objects {
		if err := fill(o.Object, values); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		normal(o)
	}
	return nil
}

// parsed returns the objects in a directory without replacing ${…}.
func parsed(folder string) ([]*unstructured.Unstructured, error) {
	entries, err := files.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		objects, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Parse returns the objects in a YAML stream.
func Parse(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case object.Object != nil:
			objects = append(objects, object)
		}
	}
}

// fill replaces ${name} in every scalar of a map.
func fill(fields map[string]any, values Values) error {
	for key, field := range fields {
		filled, err := filled(field, values)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		fields[key] = filled
	}
	return nil
}

func filled(field any, values Values) (any, error) {
	switch field := field.(type) {
	case map[string]any:
		return field, fill(field, values)
	case []any:
		for i := range field {
			var err error
			if field[i], err = filled(field[i], values); err != nil {
				return nil, err
			}
		}
		return field, nil
	case string:
		return scalar(field, values)
	}
	return field, nil
}

func scalar(text string, values Values) (any, error) {
	var out strings.Builder
	for rest := text; ; {
		before, behind, found := strings.Cut(rest, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(behind, "}")
		value, known := values[name]
		if !closed || !known {
			return nil, fmt.Errorf("the variable ${%s} is unknown", name)
		}
		if before == "" && after == "" && out.Len() == 0 {
			return value, nil
		}
		fmt.Fprint(&out, value)
		rest = after
	}
}

// normal converts an object to what the API server stores, so that applying it again changes nothing. The API server
// does not store a Secret's stringData, and labels a namespace with its name.
func normal(o *unstructured.Unstructured) {
	switch o.GetKind() {
	case "Secret":
		encode(o)
	case "Namespace":
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/metadata.name"] = o.GetName()
		o.SetLabels(labels)
	}
}

func encode(o *unstructured.Unstructured) {
	plain, found, _ := unstructured.NestedStringMap(o.Object, "stringData")
	if !found {
		return
	}
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	o.Object["data"] = data
	delete(o.Object, "stringData")
}
