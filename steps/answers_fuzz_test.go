package steps_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"carrick/cluster/clustertest/hostile"
	"carrick/steps"
	"carrick/steps/stepstest"
)

// Parsing the displayed text of a valid answer gives the same answer.
func FuzzAnswers(f *testing.F) {
	for i, text := range []string{
		"a", "a, b", "https://a:1/b?c#d", "10.0.0.0/8", "a/b=c", "1e3", "YES", "/a/b", "a: 1\nb: |\n  c\n", " , ", "٣",
		"1_000", "0x1f", "+1", "[::1]", "::ffff:1.2.3.4/128",
	} {
		f.Add(uint(i), text)
	}
	for _, text := range hostile.Texts {
		f.Add(uint(0), text)
		f.Add(uint(25), text)
		f.Add(uint(18), "https://a/"+text)
		f.Add(uint(20), "/"+text)
	}
	questions := stepstest.EveryKind()[0].Steps[0].Ask
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
		if q.Kind != steps.Text && q.Kind != steps.YAML {
			if bad := hostile.Unfit(shown); bad != "" {
				t.Errorf("%s: %s", q.Kind, bad)
			}
		}
	})
}

// The fuzz test covers every kind of answer, including kinds that are added later.
func TestEveryKindIsFuzzed(t *testing.T) {
	text, err := os.ReadFile("kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	n := strings.Count(string(text), " AnswerKind = \"")
	seen := map[steps.AnswerKind]bool{}
	for _, q := range stepstest.EveryKind()[0].Steps[0].Ask {
		seen[q.Kind] = true
	}
	if len(seen) != n {
		t.Errorf("%d kinds are fuzzed, and there are %d", len(seen), n)
	}
}
