package stepstest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/facts"
	"carrick/steps/linkfile"
)

// StandHanded opens a session of the named link on the fake servers of a state. One side is known only from its admin's
// facts file. Both admins have the state's answers. The session also has the given answers.
func StandHanded(
	t *testing.T, g *steps.Guide, assets fs.FS, dir, state, link string, side steps.Side, answers map[string]any,
) *engine.Session {
	t.Helper()
	stand := Stand(t, g, assets, dir, state)
	ends := map[steps.Side]engine.Endpoint{
		steps.Local: stand.Endpoint(steps.Local), steps.Remote: stand.Endpoint(steps.Remote),
	}
	open := func() *engine.Session {
		l := linkfile.New(g.Name, link)
		maps.Copy(l.Answers, stand.Link().Answers)
		return engine.NewSession(engine.SessionOptions{Guide: g, Link: l, Assets: assets, Endpoints: maps.Clone(ends)})
	}
	key, _, err := facts.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	h, err := open().Handover(t.Context(), side, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	text, err := h.Signed(key, facts.Recipients{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "theirs.facts")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	want := facts.Expects{Guide: g.Name, Link: link, Side: string(side), Role: g.Sides[side].Name}
	handed, err := engine.OpenPeerFile(path, key.Fingerprint(), nil, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(handed.Close)
	ends[side] = engine.Endpoint{PeerFile: handed, Absent: "the side is known only from a facts file"}
	s := open()
	for key, v := range answers {
		if err := s.Answer(key, v); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
