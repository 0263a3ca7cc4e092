package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// adopted runs a guide with these questions on two empty folders, and returns the result for each question.
func adopted(
	t *testing.T, given steps.Given, questions ...steps.Question,
) (map[string]engine.Adopted, *engine.Session, []engine.Adopted) {
	t.Helper()
	for i := range questions {
		questions[i].Title, questions[i].Help = "The "+questions[i].Key, "What it is for."
	}
	g := guide(
		"stood", steps.Role{Name: "here", Kind: steps.Host}, steps.Role{Name: "there", Kind: steps.Host},
		steps.Step{Ask: questions},
	)
	l := linkfile.New("stood", "theirs")
	l.Path = filepath.Join(t.TempDir(), "theirs.yaml")
	for k, v := range given {
		l.Answers[k] = v
	}
	ends := map[steps.Side]engine.Endpoint{}
	for _, side := range steps.Sides {
		h, err := host.New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		ends[side] = engine.Endpoint{Host: h, Name: string(side)}
	}
	s := engine.NewSession(engine.SessionOptions{Guide: g, Link: l, Endpoints: ends})
	t.Cleanup(s.Close)
	list, err := s.Adopt(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]engine.Adopted{}
	for _, a := range list {
		out[a.Question.Key] = a
	}
	return out, s, list
}

func finds(v any) func(context.Context, steps.Env) (any, string, error) {
	return func(context.Context, steps.Env) (any, string, error) { return v, "it stands there", nil }
}

// An answer of an earlier step can depend on an answer of a later step. Adopt repeats its passes until it discovers
// nothing new.
func TestAnswersThatLeanOnLaterOnes(t *testing.T) {
	of, s, _ := adopted(t, nil,
		steps.Question{Key: "a.secret", Kind: steps.Name, Adopt: func(_ context.Context, e steps.Env) (any, string, error) {
			if e.Answers.Text("b.account") == "usual" {
				return nil, "", steps.Absent("nobody")
			}
			return e.Answers.Text("b.account") + "-secret", "of the account", nil
		}},
		steps.Question{
			Key: "b.account", Kind: steps.Name, Default: steps.Fixed("usual", "the page"),
			Adopt: func(_ context.Context, e steps.Env) (any, string, error) {
				return e.Answers.Text("c.key") + "-account", "of the key", nil
			},
		},
		steps.Question{Key: "c.key", Kind: steps.Name, Default: steps.Fixed("k", "the page"), Adopt: finds("theirs")},
	)
	for key, want := range map[string]string{
		"a.secret": "theirs-account-secret", "b.account": "theirs-account", "c.key": "theirs",
	} {
		if a := of[key]; a.Value != want || a.How != engine.ByFinding || !a.Written || s.Link().Answers[key] != want {
			t.Errorf("%s is %v (%v), in the link %v; want %s", key, a.Value, a.How, s.Link().Answers[key], want)
		}
	}
}

// Answers that equal their defaults are not written, even if a default follows another answer.
func TestOnlyWhatDiffersFromTheDefaultIsWritten(t *testing.T) {
	follows := func(e steps.Env) (any, string) { return e.Answers.Text("a.name") + "-token", "the name" }
	of, s, _ := adopted(t, steps.Given{"d.given": "mine"},
		steps.Question{Key: "a.name", Kind: steps.Name, Default: steps.Fixed("usual", "the page"), Adopt: finds("theirs")},
		steps.Question{Key: "b.token", Kind: steps.Name, Default: follows, Adopt: finds("theirs-token")},
		steps.Question{
			Key: "c.many", Kind: steps.Name, Many: true, Default: steps.Fixed([]string{"x", "y"}, "the page"),
			Adopt: finds([]string{"y", "x"}),
		},
		steps.Question{Key: "d.given", Kind: steps.Name, Adopt: finds("theirs")},
		steps.Question{
			Key: "e.without", Kind: steps.Name, Opt: true, Default: steps.Fixed("standard", "the page"),
			Adopt: finds(steps.LeftEmpty),
		},
		steps.Question{Key: "f.port", Kind: steps.Port, Default: steps.Fixed(443, "the page"), Adopt: finds(8443)},
		steps.Question{Key: "g.moot", Kind: steps.Name, When: func(steps.Env) bool { return false }, Adopt: finds("theirs")},
	)
	want := steps.Given{"a.name": "theirs", "d.given": "mine", "e.without": steps.LeftEmpty, "f.port": 8443}
	for key := range of {
		if got := s.Link().Answers[key]; got != want[key] {
			t.Errorf("%s is written as %v, want %v", key, got, want[key])
		}
	}
	if a := of["b.token"]; a.How != engine.ByFinding || a.Written || a.Value != "theirs-token" {
		t.Errorf("b.token: %+v", a)
	}
	if a := of["d.given"]; a.How != engine.ByUser {
		t.Errorf("d.given: %+v", a)
	}
	if _, told := of["g.moot"]; told {
		t.Error("a question that does not apply is told")
	}
}

// Questions that could not be answered become comments, and the file remains a valid link file. Invalid values are not
// written.
func TestWhatIsToBeAnsweredByHandStandsInTheFile(t *testing.T) {
	fails := func(context.Context, steps.Env) (any, string, error) {
		return nil, "", errors.New("only its admins may look")
	}
	of, s, list := adopted(t, nil,
		steps.Question{
			Key: "a.unseen", Kind: steps.Pick,
			Of:      []steps.Choice{{Value: "x", Title: "the one"}, {Value: "y", Title: "the other"}},
			Default: steps.Fixed("y", "the page"), Adopt: fails,
		},
		steps.Question{Key: "b.nothing", Kind: steps.Port},
		steps.Question{Key: "c.wrong", Kind: steps.Name, Adopt: finds("Not A Name\x1b[31m")},
		steps.Question{Key: "d.fine", Kind: steps.Name, Default: steps.Fixed("usual", "the page")},
		steps.Question{Key: "e.spare", Kind: steps.Name, Opt: true},
	)
	for key, byHand := range map[string]bool{
		"a.unseen": true, "b.nothing": true, "c.wrong": true, "d.fine": false, "e.spare": false,
	} {
		if a := of[key]; a.ByHand() != byHand {
			t.Errorf("%s is to be answered by hand: %v (%+v)", key, a.ByHand(), a)
		}
	}
	if err := s.SaveAdopted(list); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(s.Link().Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Not discovered: only its admins may look\n#   a.unseen: \"y\"\n", "# - x: the one\n", "#   b.nothing: 443\n",
		"What it is for.", "#answers:\n",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the file lacks %q:\n%s", want, data)
		}
	}
	if strings.Contains(string(data), "\x1b") || strings.Contains(string(data), "d.fine") ||
		!strings.HasSuffix(string(data), "\n") {
		t.Errorf("the file is\n%s", data)
	}
	l, err := linkfile.Load(s.Link().Path, []*steps.Guide{s.Guide()})
	if err != nil || len(l.Answers) != 0 {
		t.Fatalf("it reads as %v: %v", l, err)
	}
	uncommented := strings.NewReplacer("#answers:", "answers:", "#   b.nothing", "  b.nothing").Replace(string(data))
	l, err = linkfile.Parse("x.yaml", []byte(uncommented), []*steps.Guide{s.Guide()})
	if err != nil || l.Answers["b.nothing"] != 443 {
		t.Errorf("an example that is taken reads as %v: %v\n%s", l, err, uncommented)
	}
}

func TestNamesOfLinks(t *testing.T) {
	for _, c := range [][3]string{
		{"kind-milan", "kind-rome", "milan-rome"},
		{"arn:aws:eks:eu:1:cluster/milan", "admin@rome", "milan-rome"},
		{"", "", "guide"},
		{"a", "a", "a-a"},
	} {
		if got := engine.SuggestLinkName("guide", c[0], c[1]); got != c[2] {
			t.Errorf("%s and %s give %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
