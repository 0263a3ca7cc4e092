package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/linkfile"
)

// poolGuide has a question with a long answer.
func poolGuide() []*steps.Guide {
	spec := steps.Question{Key: "spec", Title: "Pool", Help: "h", Kind: steps.YAML, Check: func(text string) error {
		if at := strings.Index(text, "wrong"); at >= 0 {
			return errors.New("line " + string(rune('1'+strings.Count(text[:at], "\n"))) + ": wrong is no name")
		}
		return nil
	}}
	return []*steps.Guide{{Name: "pool", Steps: []steps.Step{{Name: "s", Ask: []steps.Question{
		spec, {Key: "name", Title: "Name", Help: "h", Kind: steps.Text, Opt: true},
	}}}}}
}

const linkHead = "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: a}\nguide: pool\n"

// A manually written answer keeps its layout, and the wizard saves answers in the same layout.
func TestALongAnswerIsALiteralBlock(t *testing.T) {
	const spec = "# a pool\nname: one\nclasses:\n  - cpu: 1\n\n    memory: 2 # GiB\n"
	const block = "  spec: |\n    # a pool\n    name: one\n    classes:\n      - cpu: 1\n\n        memory: 2 # GiB\n"
	for name, answers := range map[string]string{
		"new": "", "block": "answers:\n" + block, "flow": "answers: {name: x}\n",
		"other": "answers:\n  # why\n  spec: |\n    a: 1\n  name: x\n", "quoted": "answers:\n  spec: \"a: 1\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.yaml")
			if err := os.WriteFile(path, []byte(linkHead+answers), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := linkfile.Load(path, poolGuide())
			if err != nil {
				t.Fatal(err)
			}
			q := poolGuide()[0].Steps[0].Ask[0]
			v, err := q.Parse(spec)
			if err != nil {
				t.Fatal(err)
			}
			l.Answers["spec"] = v
			for range 2 {
				if err := l.Save(); err != nil {
					t.Fatal(err)
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(text), block) || (name == "other" && !strings.Contains(string(text), "  # why\n")) {
					t.Fatalf("it was saved as\n%s", text)
				}
				if l, err = linkfile.Load(path, poolGuide()); err != nil || l.Answers["spec"] != spec {
					t.Fatalf("read again: %q, %v", l.Answers["spec"], err)
				}
			}
		})
	}
}

func TestFaultsOfALongAnswerHaveTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"answers:\n  spec: |\n    name: one\n    also: wrong\n": "a.yaml:8:1: answers.spec: wrong is no name",
		"answers:\n  spec: |\n\n    name: wrong\n":              "a.yaml:8:1: answers.spec: wrong is no name",
		"answers:\n  spec: \"a: wrong\"\n":                      "a.yaml:6:9: answers.spec: line 1: wrong is no name",
		"answers:\n  spec: |\n    name: one\n    name: two\n":   `a.yaml:8:1: answers.spec: mapping key "name" already defined at line 1`,
		"answers:\n  spec: |\n    a: 1\n    \tb: [\n":           "a.yaml:8:1: answers.spec: not valid YAML: ",
		"answers:\n  spec: |\n    # nothing\n": "a.yaml:6:9: answers.spec: it contains only " +
			"comments",
		"answers:\n  spec: |\n    a: 1\n    ---\n    b: 2\n": "a.yaml:6:9: answers.spec: it contains more than one " +
			"YAML document",
		"answers:\n  spec: {name: one}\n": "a.yaml:6:9: answers.spec: expected YAML as text: " +
			"write | after the colon",
		"answers:\n  spec: [one]\n": "a.yaml:6:9: answers.spec: expected YAML as text",
		"answers:\n  spec: 5\n":     "a.yaml:6:9: answers.spec: 5 is not a string",
		"answers:\n  spec: \"a: \\u0007\"\n": "a.yaml:6:9: answers.spec: line 1: contains a character that " +
			"cannot be displayed",
		"answers:\n  spec: \"\"\n":                                 "a.yaml:6:9: answers.spec: an answer is required",
		"answers:\n  spec: |\n" + strings.Repeat("    #\n", 10000): "it has 10001 lines; the maximum is 9999",
	} {
		_, err := linkfile.Parse("a.yaml", []byte(linkHead+text), poolGuide())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v\nwant %s", text, err, want)
		}
	}
}

func TestALongAnswerIsKeptAsItWasTyped(t *testing.T) {
	q := poolGuide()[0].Steps[0].Ask[0]
	for typed, want := range map[string]string{
		"a: 1":                 "a: 1\n",
		"  a: 1\n  b: 2\n\n":   "  a: 1\n  b: 2\n",
		"a: 1  \r\nb: 2\t\r\n": "a: 1\nb: 2\n",
		"a: ü\n# 日本語\n":        "a: ü\n# 日本語\n",
	} {
		if v, err := q.Parse(typed); err != nil || v != want {
			t.Errorf("%q: got %q, %v", typed, v, err)
		}
	}
}
