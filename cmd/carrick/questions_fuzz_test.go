package main

import (
	"reflect"
	"strings"
	"testing"

	"carrick/cluster/clean"
	"carrick/cluster/clustertest/hostile"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// Any typed text is either rejected by an error that shows no secret, or is an answer that a link file preserves.
func FuzzQuestions(f *testing.F) {
	type asked struct {
		guide *steps.Guide
		q     steps.Question
	}
	var all []asked
	for _, g := range guides.All() {
		for _, s := range g.Steps {
			for _, q := range s.Ask {
				all = append(all, asked{g, q})
				f.Add(uint(len(all)-1), "a, b.c")
				f.Add(uint(len(all)-1), "https://a.example.org:1/x?y#z")
				f.Add(uint(len(all)-1), hostile.Texts["clears the screen"])
				f.Add(uint(len(all)-1), "a: {b: [1, {c: d}]}\ne: 0x1\n")
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint, typed string) {
		at := all[which%uint(len(all))]
		v, err := at.q.Parse(typed)
		if err != nil {
			if text := strings.TrimSpace(typed); at.q.Secret && len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error shows what was typed: %v", at.q.Key, err)
			}
			if hostile.Unfit(clean.Text(err.Error())) != "" || err.Error() == "" {
				t.Errorf("%s: %q", at.q.Key, err)
			}
			return
		}
		if v == nil || at.q.Secret {
			return
		}
		l := linkfile.New(at.guide.Name, "a")
		l.Answers[at.q.Key] = v
		text, err := l.Marshal()
		if err != nil {
			t.Fatalf("%s: %#v can't be written: %v", at.q.Key, v, err)
		}
		again, err := linkfile.Parse("a.yaml", text, guides.All())
		if err != nil || !reflect.DeepEqual(again.Answers[at.q.Key], v) {
			t.Errorf("%s: %#v became %#v, %v, by\n%s", at.q.Key, v, again, err, text)
		}
	})
}
