package engine

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carrick/steps"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

// A facts file provides the answers that both admins share and the writer's own answers, but not the reader's own
// answers.
func TestWhatAFactsFileAnswers(t *testing.T) {
	question := func(key string, on steps.Side, not bool) steps.Question {
		return steps.Question{Key: key, Title: key, Help: "h", Kind: steps.Text, On: on, NotFromPeer: not}
	}
	g := &steps.Guide{
		Name: "duo",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "guest", Kind: steps.Host}, steps.Remote: {Name: "house", Kind: steps.Host},
		},
		Steps: []steps.Step{{Name: "one", Ask: []steps.Question{
			question("shared", "", false), question("program", "", true), question("readers", steps.Local, false),
			question("writers", steps.Remote, true),
		}}},
	}
	for side, counting := range map[steps.Side][]string{steps.Remote: {"writers"}, steps.Local: {"shared", "readers"}} {
		t.Run(string(side), func(t *testing.T) { answersCount(t, g, side, counting) })
	}
}

// answersCount requires that a facts file of a side's admin provides exactly these answers.
func answersCount(t *testing.T, g *steps.Guide, side steps.Side, counting []string) {
	theirs := map[string]any{}
	for _, q := range g.Steps[0].Ask {
		theirs[q.Key] = "/theirs"
	}
	role := g.Sides[side].Name
	now := time.Now()
	file := &facts.File{
		APIVersion: facts.Version, Kind: facts.Kind, Guide: "duo", Link: "apart", Side: string(side), Role: role, Taken: now,
		Until: now.Add(time.Hour), Answers: theirs,
	}
	path := filepath.Join(t.TempDir(), "theirs.facts")
	writeSigned(t, path, file, signingKey(t))
	h, err := OpenPeerFile(path, "", nil, facts.Expects{Guide: "duo", Link: "apart", Side: string(side), Role: role})
	if err != nil {
		t.Fatal(err)
	}
	s := NewSession(SessionOptions{
		Guide: g, Link: linkfile.New("duo", "apart"),
		Endpoints: map[steps.Side]Endpoint{side: {PeerFile: h, Absent: "it is a file"}},
	})
	t.Cleanup(s.Close)

	for _, a := range s.Answers(t.Context(), &g.Steps[0]) {
		counts := slices.Contains(counting, a.Question.Key)
		if (a.Value == "/theirs") != counts {
			t.Errorf("%s is %v", a.Question.Key, a.Value)
		}
		if proposed := strings.Contains(a.Proposed, "the "+role+"'s file of") &&
			strings.Contains(a.Proposed, "proposes /theirs"); proposed == counts {
			t.Errorf("%s: proposed %q", a.Question.Key, a.Proposed)
		}
	}
	missing := s.Missing(t.Context())
	said := s.WhatIsMissing(t.Context(), missing).Error()
	if len(missing) != len(g.Steps[0].Ask)-len(counting) || !strings.Contains(said, "for program the "+role+"'s file of") {
		t.Errorf("missing are %d: %s", len(missing), said)
	}

	// What is asked of the reader alone need not agree.
	asked := map[steps.Side]string{steps.Remote: "writers", steps.Local: "readers"}[side]
	for _, q := range g.Steps[0].Ask {
		agrees := q.Key != "shared" && q.Key != asked
		if err := h.Differences(g, side, steps.Given{q.Key: "/ours"}); (err == nil) != agrees {
			t.Errorf("%s: %v", q.Key, err)
		}
	}
}
