package steps

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/steps/facts"
)

// A facts file answers what both admins share and what is its writer's own. It does not answer for its reader.
func TestWhatAFactsFileAnswers(t *testing.T) {
	question := func(key string, on Side, not bool) Question {
		return Question{Key: key, Title: key, Help: "h", Kind: Text, On: on, NotFromPeer: not}
	}
	g := &Guide{
		Name: "duo", Sides: map[Side]Role{Local: {Name: "guest", Kind: Host}, Remote: {Name: "house", Kind: Host}},
		Steps: []Step{{Name: "one", Ask: []Question{
			question("shared", "", false), question("program", "", true), question("readers", Local, false), question("writers", Remote, true),
		}}},
	}
	theirs := map[string]any{}
	for _, q := range g.Steps[0].Ask {
		theirs[q.Key] = "/theirs"
	}
	now := time.Now()
	file := &facts.File{
		APIVersion: facts.Version, Kind: facts.Kind, Guide: "duo", Link: "apart", Side: "remote", Role: "house", Taken: now, Until: now.Add(time.Hour), Answers: theirs,
	}
	path := filepath.Join(t.TempDir(), "theirs.facts")
	writeSigned(t, path, file, signingKey(t))
	h, err := OpenHanded(path, "", nil, facts.Expects{Guide: "duo", Link: "apart", Side: "remote", Role: "house"})
	if err != nil {
		t.Fatal(err)
	}
	s := NewSession(SessionOptions{Guide: g, Link: NewLink("duo", "apart"), Ends: map[Side]End{Remote: {Handed: h, Absent: "it is a file"}}})
	t.Cleanup(s.Close)

	for _, a := range s.Answers(t.Context(), &g.Steps[0]) {
		counts := a.Question.Key == "shared" || a.Question.Key == "writers"
		if (a.Value == "/theirs") != counts {
			t.Errorf("%s is %v", a.Question.Key, a.Value)
		}
		if proposed := strings.Contains(a.Proposed, "the house's file of") && strings.Contains(a.Proposed, "proposes /theirs"); proposed == counts {
			t.Errorf("%s: proposed %q", a.Question.Key, a.Proposed)
		}
	}
	missing := s.Missing(t.Context())
	said := s.WhatIsMissing(t.Context(), missing).Error()
	if len(missing) != 2 || !strings.Contains(said, "for program the house's file of") || !strings.Contains(said, "for readers the house's file of") {
		t.Errorf("missing are %d: %s", len(missing), said)
	}

	// What does not count need not agree, either.
	for key, agrees := range map[string]bool{"shared": false, "program": true, "readers": true, "writers": false} {
		if err := h.Differences(g, Remote, Given{key: "/ours"}); (err == nil) != agrees {
			t.Errorf("%s: %v", key, err)
		}
	}
}
