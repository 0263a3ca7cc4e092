package action

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"carrick/cluster/clustertest/hostile"
	"carrick/steps"
)

const shapedLink = `apiVersion: v1
kind: ConfigMap
metadata: {name: x, labels: {"carrick/${answers.key}": "${answers.one}"}}
data: {whole: '${answers.one}', within: 'a ${answers.two} b', '${answers.key}': v, list: ['${answers.one}', '${answers.two}']}
`

// An answer changes the values in a manifest, but never its structure.
func FuzzSubstitution(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("x\n  y: z\n---\nkind: Secret", "${link.name}", "${answers.one}: {}")
	f.Add("{{.}}", "!!binary x", "whole")
	for _, text := range hostile.Texts {
		f.Add(text, text, text)
	}
	f.Fuzz(func(t *testing.T, one, two, key string) {
		answers := map[string]any{"one": one, "two": two, "key": key}
		env := steps.Env{
			Link: "l", Assets: fstest.MapFS{"a.yaml": {Data: []byte(shapedLink)}},
			Answers: steps.Answers{Lookup: func(k string) any { return answers[k] }},
		}
		objs, err := render(context.Background(), "a.yaml", scope{env: env})
		if err != nil {
			if strings.Contains(err.Error(), "occurs twice") {
				return
			}
			t.Fatal(err)
		}
		if len(objs) != 1 {
			t.Fatalf("%d documents", len(objs))
		}
		want := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "x", "labels": map[string]any{"carrick/" + key: one}},
			"data":     map[string]any{"whole": one, "within": "a " + two + " b", key: "v", "list": []any{one, two}},
		}
		if !reflect.DeepEqual(objs[0].Object, want) {
			t.Errorf("got %#v\nwant %#v", objs[0].Object, want)
		}
	})
}

// filled returns a scope in which every placeholder of an asset has the same text.
func filled(dir fstest.MapFS, asset, text string) scope {
	same := func(string) (any, error) { return text, nil }
	env := steps.Env{
		Link: "l", Assets: dir, Answers: steps.Answers{Lookup: func(string) any { return text }},
		Own: steps.Facts{Lookup: same}, Peer: steps.Facts{Lookup: same},
	}
	s := scope{env: env, values: Values{}, each: map[string]any{}}
	for _, m := range Placeholder.FindAllStringSubmatch(string(dir[asset].Data), -1) {
		switch {
		case m[1] == "values":
			s.values[m[2]] = func(context.Context, steps.Env) (any, error) { return text, nil }
		case m[1] == "each" && m[2] == "":
			s.each = text
		case m[1] == "each":
			if each, ok := s.each.(map[string]any); ok {
				each[m[2]] = text
			}
		}
	}
	return s
}

// shape returns the structure of a document without the text of its scalars and keys.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, inner := range v {
			parts = append(parts, shape(inner))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, inner := range v {
			parts = append(parts, shape(inner))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return "."
}

// The assets of every guide keep their structure, whatever the answers and facts are.
func FuzzAssets(f *testing.F) {
	files, err := filepath.Glob("../../assets/*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no assets: %v", err)
	}
	dir := fstest.MapFS{}
	var names []string
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../assets/")
		dir[name] = &fstest.MapFile{Data: data}
		names = append(names, name)
	}
	for i := range names {
		f.Add(uint(i), "x")
		f.Add(uint(i), "x\n  y: z\n---\nkind: Secret")
		f.Add(uint(i), "${link.name}{{.}}: [")
	}
	f.Fuzz(func(t *testing.T, which uint, text string) {
		name := names[which%uint(len(names))]
		one := func(text string) (out []string, kinds []string, err error) {
			objs, err := render(context.Background(), name, filled(dir, name, text))
			for _, o := range objs {
				out = append(out, shape(o.Object))
				kinds = append(kinds, o.GetAPIVersion()+" "+o.GetKind())
			}
			return out, kinds, err
		}
		plain, kinds, err := one("plain")
		if err != nil {
			return // it is no manifest, or takes no text there
		}
		got, same, err := one(text)
		if err != nil {
			if !strings.Contains(err.Error(), "occurs twice") &&
				!strings.Contains(err.Error(), "no apiVersion, kind or name") {
				t.Fatal(err)
			}
			return
		}
		if !reflect.DeepEqual(plain, got) || !reflect.DeepEqual(kinds, same) {
			t.Errorf("%s: %q makes it\n%v %v\nfrom\n%v %v", name, text, same, got, kinds, plain)
		}
	})
}
