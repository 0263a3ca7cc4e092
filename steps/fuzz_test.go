package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"carrick/cluster/clustertest/hostile"
)

// everyKind is a guide that asks one question of each kind.
func everyKind() []*Guide {
	kinds := []AnswerKind{Text, Name, Namespace, HostName, Port, Number, CIDR, Label, Quantity, URL, Path, YesNo, Pick, YAML}
	g := &Guide{Name: "kinds", Title: "Kinds", Sides: map[Side]Role{Local: {Name: "a", Kind: Cluster}, Remote: {Name: "b", Kind: Cluster}}}
	step := Step{Name: "ask"}
	for i, k := range kinds {
		q := Question{Key: fmt.Sprintf("q.%d", i), Title: string(k), Help: "h", Kind: k, Opt: i%2 == 0, Of: []Choice{{Value: "one"}, {Value: "two"}}}
		step.Ask = append(step.Ask, q)
		if k != YAML {
			q.Key, q.Many = q.Key+".many", true
			step.Ask = append(step.Ask, q)
		}
	}
	step.Ask = append(step.Ask, Question{Key: "hidden", Title: "h", Help: "h", Kind: Text, Secret: true})
	g.Steps = []Step{step}
	return []*Guide{g}
}

const fuzzLink = "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: a}\nguide: kinds\nlocal: {context: a, kubeconfig: ~/.kube/b}\nremote: {context: b}\nanswers:\n"

// A link file is taken, and then says the same when it is written and read again;
// or it is refused with all its faults, each at a line and a column.
func FuzzLinkFile(f *testing.F) {
	for _, answers := range []string{
		"  {}\n", "  q.0: text\n", "  q.4: 80\n", "  q.4: '80'\n", "  q.11: yes\n", "  q.13: |\n    a: 1\n    b: [2]\n", "  q.1.many: [a, b]\n", "  q.12: three\n", "  hidden: x\n", "  no: x\n",
		"  q.0: \"\\e[31m\\u202e\"\n", "  q.0: ~\n", "  q.0: ''\n", "  q.0: !!binary aGVsbG8=\n", "  q.0: 2001-01-01\n", "  ? {a: b}\n  : c\n", "  <<: {q.0: a}\n", "  q.0: 0x10\n", "  q.5: 1e3\n", "  q.5: .inf\n",
	} {
		f.Add([]byte(fuzzLink + answers))
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(fuzzLink + "---\nb: c\n"))
	f.Add([]byte(strings.Replace(fuzzLink, "metadata: {name: a}", "metadata: {name: a, \"\\u001b\": b}", 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLink("l.yaml", data, everyKind())
		if err != nil {
			faultsHavePlaces(t, err)
			return
		}
		if CheckLinkName(l.Name()) != nil || l.Guide != "kinds" {
			t.Errorf("took %q of guide %q", l.Name(), l.Guide)
		}
		written, err := l.Marshal()
		if err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
		again, err := ParseLink("l.yaml", written, everyKind())
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, written)
		}
		if !reflect.DeepEqual(l.Answers, again.Answers) || l.Metadata != again.Metadata || !reflect.DeepEqual(l.Local, again.Local) || !reflect.DeepEqual(l.Remote, again.Remote) {
			t.Errorf("%#v became %#v by\n%s", l, again, written)
		}
	})
}

func faultsHavePlaces(t *testing.T, err error) {
	t.Helper()
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			faultsHavePlaces(t, one)
		}
		return
	}
	fault := (*FileError)(nil)
	if !errors.As(err, &fault) {
		t.Fatalf("not a fault of the file: %v", err)
	}
	if fault.Problem == "" || (fault.Line < 1 || fault.Column < 1) && !strings.Contains(fault.Problem, "1 MiB") {
		t.Errorf("no place: %#v", fault)
	}
}

// An answer that is taken shows as what gives it again.
func FuzzAnswers(f *testing.F) {
	for i, text := range []string{"a", "a, b", "https://a:1/b?c#d", "10.0.0.0/8", "a/b=c", "1e3", "YES", "/a/b", "a: 1\nb: |\n  c\n", " , ", "٣", "1_000", "0x1f", "+1", "[::1]", "::ffff:1.2.3.4/128"} {
		f.Add(uint(i), text)
	}
	for _, text := range hostile.Texts {
		f.Add(uint(0), text)
		f.Add(uint(25), text)
		f.Add(uint(18), "https://a/"+text)
		f.Add(uint(20), "/"+text)
	}
	questions := everyKind()[0].Steps[0].Ask
	f.Fuzz(func(t *testing.T, which uint, typed string) {
		q := questions[which%uint(len(questions))]
		v, err := q.Parse(typed)
		if err != nil {
			return
		}
		shown := q.Show(v)
		if q.Secret {
			if secret := strings.TrimSpace(typed); strings.Contains(shown, secret) && len(secret) > len("(hidden)") {
				t.Errorf("a secret is shown: %q", shown)
			}
			return
		}
		again, err := q.Parse(shown)
		if err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%s: %q became %#v, which shows as %q and becomes %#v, %v", q.Kind, typed, v, shown, again, err)
		}
		if accepted, err := q.Accept(v); v != nil && (err != nil || !reflect.DeepEqual(v, accepted)) {
			t.Errorf("%s: %#v in a link file becomes %#v, %v", q.Kind, v, accepted, err)
		}
		if q.Kind != Text && q.Kind != YAML {
			if bad := hostile.Unfit(shown); bad != "" {
				t.Errorf("%s: %s", q.Kind, bad)
			}
		}
	})
}

const shapedLink = `apiVersion: v1
kind: ConfigMap
metadata: {name: x, labels: {"carrick/${answers.key}": "${answers.one}"}}
data: {whole: '${answers.one}', within: 'a ${answers.two} b', '${answers.key}': v, list: ['${answers.one}', '${answers.two}']}
`

// An answer changes what a manifest says, and never what it is.
func FuzzSubstitution(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("x\n  y: z\n---\nkind: Secret", "${link.name}", "${answers.one}: {}")
	f.Add("{{.}}", "!!binary x", "whole")
	for _, text := range hostile.Texts {
		f.Add(text, text, text)
	}
	f.Fuzz(func(t *testing.T, one, two, key string) {
		answers := map[string]any{"one": one, "two": two, "key": key}
		env := Env{Link: "l", Assets: fstest.MapFS{"a.yaml": {Data: []byte(shapedLink)}}, Answers: Answers{func(k string) any { return answers[k] }}}
		objs, err := render(context.Background(), "a.yaml", scope{env: env})
		if err != nil {
			if strings.Contains(err.Error(), "comes out twice") {
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

// A word for a shell is one word there, and the same.
func FuzzQuoted(f *testing.F) {
	for _, text := range hostile.Texts {
		f.Add(text)
	}
	for _, word := range []string{"", "a b", "'", `a'\''b`, "$(id)", "`id`", "a;b", "-n", "~", "a\\"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if got, ok := oneWord(Quoted(word)); !ok || got != word {
			t.Errorf("%q is quoted as %q: %q", word, Quoted(word), got)
		}
	})
}

// oneWord reads a word as a POSIX shell does, where nothing in it is special.
func oneWord(text string) (word string, ok bool) {
	if plainWord.MatchString(text) {
		return text, true
	}
	var out strings.Builder
	for quoted := false; text != ""; text = text[1:] {
		switch c := text[0]; {
		case c == '\'':
			quoted, ok = !quoted, true
		case quoted:
			out.WriteByte(c)
		case c == '\\' && len(text) > 1:
			text = text[1:]
			out.WriteByte(text[0])
		default:
			return out.String(), false
		}
	}
	return out.String(), ok
}

// What is fuzzed is what there is: a kind that is added is among them.
func TestEveryKindIsFuzzed(t *testing.T) {
	text, err := os.ReadFile("kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	n := strings.Count(string(text), " AnswerKind = \"")
	seen := map[AnswerKind]bool{}
	for _, q := range everyKind()[0].Steps[0].Ask {
		seen[q.Kind] = true
	}
	if len(seen) != n {
		t.Errorf("%d kinds are fuzzed, and there are %d", len(seen), n)
	}
}

// filled is a scope in which everything that an asset names is one text.
func filled(dir fstest.MapFS, asset, text string) scope {
	same := func(string) (any, error) { return text, nil }
	env := Env{Link: "l", Assets: dir, Answers: Answers{func(string) any { return text }}, Own: Facts{same}, Peer: Facts{same}}
	s := scope{env: env, values: Values{}, each: map[string]any{}}
	for _, m := range placeholder.FindAllStringSubmatch(string(dir[asset].Data), -1) {
		switch {
		case m[1] == "values":
			s.values[m[2]] = func(context.Context, Env) (any, error) { return text, nil }
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

// shape is what a document is, without what its scalars and keys say.
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

// The assets of every guide keep their shape, whatever answers and facts say.
func FuzzAssets(f *testing.F) {
	files, err := filepath.Glob("../assets/*/*.yaml")
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
		name := strings.TrimPrefix(filepath.ToSlash(path), "../assets/")
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
			if !strings.Contains(err.Error(), "comes out twice") && !strings.Contains(err.Error(), "no apiVersion, kind or name") {
				t.Fatal(err)
			}
			return
		}
		if !reflect.DeepEqual(plain, got) || !reflect.DeepEqual(kinds, same) {
			t.Errorf("%s: %q makes it\n%v %v\nfrom\n%v %v", name, text, same, got, kinds, plain)
		}
	})
}
