package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"

	"carrick/cluster/clean"
)

// plain returns a copy of values with the types that encoding/json decodes. The copy can be compared with the values in
// a release.
func plain(values map[string]any) (map[string]any, error) {
	out := map[string]any{}
	raw, err := json.Marshal(values)
	if err == nil && values != nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("the values cannot be represented in YAML: %w", err)
	}
	return out, nil
}

// conform validates values, merged with the defaults, against the schemas of a chart and its subcharts. It does not
// load external schemas from files or URLs.
func conform(c *chartv2.Chart, values map[string]any) error {
	var faults []error
	if len(c.Schema) > 0 {
		if err := against(c.Schema, values); err != nil {
			faults = append(faults, fmt.Errorf("chart %s rejects these values: %w", clean.Text(c.Name()), err))
		}
	}
	for _, sub := range c.Dependencies() {
		under, ok := values[sub.Name()].(map[string]any)
		if !ok {
			continue
		}
		if err := conform(sub, under); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// nowhere is a schema loader that rejects every external schema.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("its schema refers to %s, but carrick does not download schemas", clean.Text(url))
}

func against(schema []byte, values map[string]any) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return errors.New("its values.schema.json is not JSON")
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	const name = "values.schema.json"
	if err := compiler.AddResource(name, doc); err != nil {
		return fmt.Errorf("its schema cannot be used: %w", err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return fmt.Errorf("its schema cannot be used: %w", err)
	}
	exact, err := json.Marshal(values)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(exact))
	if err != nil {
		return err
	}
	invalid := (*jsonschema.ValidationError)(nil)
	switch err := compiled.Validate(v); {
	case errors.As(err, &invalid):
		return errors.New(strings.Join(problems(invalid), "; "))
	default:
		return err
	}
}

// problems returns the innermost causes of a validation error, for example "at replicas: got string, want integer".
func problems(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		where := strings.Join(e.InstanceLocation, ".")
		if where == "" {
			where = "the top level"
		}
		text := e.Error()
		if at := strings.LastIndex(text, "': "); at >= 0 {
			text = text[at+3:]
		}
		return []string{clean.Text("at " + where + ": " + text)}
	}
	var out []string
	for _, cause := range e.Causes {
		out = append(out, problems(cause)...)
	}
	return out
}

// unknown returns the paths of values that appear neither in the chart's values.yaml nor in its schema nor in its
// templates. A chart can still use such a value, so this is a warning and not an error. If a default is empty or not a
// map, any key below it is allowed.
func unknown(c *chartv2.Chart, given map[string]any) []string {
	var schema map[string]any
	_ = json.Unmarshal(c.Schema, &schema) // conform reports the error
	subs := map[string]*chartv2.Chart{}
	for _, sub := range c.Dependencies() {
		subs[sub.Name()] = sub
	}
	for _, d := range c.Metadata.Dependencies {
		if d.Alias != "" && subs[d.Alias] == nil {
			subs[d.Alias] = subs[d.Name]
		}
	}
	var out []string
	for _, key := range keysOf(given) {
		sub, isSub := subs[key]
		table, _ := given[key].(map[string]any)
		switch {
		case key == "global" || key == "tags":
		case isSub && sub != nil:
			for _, name := range unknown(sub, without(table, c.Values[key])) {
				out = append(out, key+"."+name)
			}
		default:
			found := stray(map[string]any{key: given[key]}, c.Values, schema, "")
			out = append(out, slices.DeleteFunc(found, func(value string) bool { return reads(c, value) })...)
		}
	}
	return out
}

// reads reports whether a template of the chart contains .Values and the name of a value. Some charts mention a value
// only in a comment of values.yaml (nfs-subdir-external-provisioner @ 59a3ca2: storageClass.provisionerName).
func reads(c *chartv2.Chart, value string) bool {
	name := regexp.MustCompile(`\.Values\.` + regexp.QuoteMeta(value) + `\b`)
	return slices.ContainsFunc(c.Templates, func(f *common.File) bool { return name.Match(f.Data) })
}

// without returns the values in given whose keys do not appear in known. given contains the values for a subchart, and
// known contains the parent chart's defaults for the subchart.
func without(given map[string]any, known any) map[string]any {
	table, _ := known.(map[string]any)
	out := map[string]any{}
	for k, v := range given {
		if _, ok := table[k]; !ok && k != "enabled" { // "enabled" is the usual condition of a subchart
			out[k] = v
		}
	}
	return out
}

func stray(given, defaults, schema map[string]any, at string) []string {
	properties, _ := schema["properties"].(map[string]any)
	var out []string
	for _, key := range keysOf(given) {
		def, known := defaults[key]
		property, described := properties[key].(map[string]any)
		if !known && !described {
			out = append(out, clean.Text(at+key))
			continue
		}
		table, isTable := given[key].(map[string]any)
		under, _ := def.(map[string]any)
		inner, _ := property["properties"].(map[string]any)
		if isTable && (len(under) > 0 || len(inner) > 0) {
			out = append(out, stray(table, under, property, at+key+".")...)
		}
	}
	return out
}

func keysOf(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
