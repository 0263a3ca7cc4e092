package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// keysGuide has a check of both sides, and an action on each side that fixes it.
func keysGuide(mend string, on steps.Side) *steps.Guide {
	call := action.Call{
		Preview: func(context.Context, steps.Env) (steps.Change, error) { return steps.Change{}, nil },
		Make:    func(context.Context, steps.Env, steps.Progress) error { return nil },
		Keeps:   "nothing",
	}
	return guide(
		"keys", steps.Role{Name: "here", Kind: steps.Host}, steps.Role{Name: "there", Kind: steps.Host}, steps.Step{
			Actions: []steps.Action{
				{Name: "here-keys", Title: "Make them here", On: steps.Local, Doer: call},
				{Name: "there-keys", Title: "Make them there", On: steps.Remote, Doer: call},
				{Name: "over-there", Title: "A name of the other side", On: steps.Local, Doer: call},
				{Name: "over-here", Title: "A name of this side", On: steps.Local, Doer: call},
			},
			Checks: []steps.Check{{
				Name: "pair", Title: "there is a pair", Why: "w", On: on, FixedBy: mend,
				Run: func(context.Context, steps.Env) steps.Result { return steps.Failed("there is none", "") },
			}},
		},
	)
}

func TestACheckOfBothSidesIsMendedBySide(t *testing.T) {
	g := keysGuide("${side}-keys", steps.Both)
	if err := engine.Validate([]*steps.Guide{g}, fstest.MapFS{}); err != nil {
		t.Fatal(err)
	}
	host, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	ends := map[steps.Side]engine.Endpoint{steps.Local: {Host: host}, steps.Remote: {Host: host}}
	s := engine.NewSession(
		engine.SessionOptions{Guide: g, Link: linkfile.New("keys", "test"), Endpoints: ends, Assets: fstest.MapFS{}},
	)
	defer s.Close()
	for _, c := range g.Cells() {
		check, step := g.Check(c.Check)
		if r, _ := s.Probe(t.Context(), c); r.Fix != "carrick apply test.yaml --step "+step.Name {
			t.Errorf("on the %s the fix is %q", c.Side, r.Fix)
		}
		action, _ := g.FixingAction(check, c.Side)
		if action == nil || action.On != c.Side {
			t.Fatalf("on the %s it is mended by %v", c.Side, action)
		}
		plan := &engine.Plan{Actions: []engine.Planned{{Action: action.Name, Side: c.Side}}}
		other := steps.Cell{Step: c.Step, Check: c.Check, Side: c.Side.Peer()}
		if !plan.Fixes(g, c) || plan.Fixes(g, other) {
			t.Errorf(
				"a plan of %s mends the %s: %v, the other side: %v", action.Name, c.Side, plan.Fixes(g, c), plan.Fixes(g, other),
			)
		}
	}
}

// A verdict can name the action that fixes it, even if its check names none.
func TestAVerdictNamesTheActionThatMendsIt(t *testing.T) {
	g := keysGuide("", steps.Local)
	c := g.Cells()[0]
	check, step := g.Check(c.Check)
	check.Run = func(context.Context, steps.Env) steps.Result {
		return steps.Failed("there is none", "").FixedBy("here-keys")
	}
	host, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	ends := map[steps.Side]engine.Endpoint{steps.Local: {Host: host}, steps.Remote: {Host: host}}
	s := engine.NewSession(
		engine.SessionOptions{Guide: g, Link: linkfile.New("keys", "test"), Endpoints: ends, Assets: fstest.MapFS{}},
	)
	defer s.Close()
	if r, _ := s.Probe(t.Context(), c); r.Fix != "carrick apply test.yaml --step "+step.Name {
		t.Errorf("the fix is %q", r.Fix)
	}
}

func TestValidateKnowsMends(t *testing.T) {
	for _, c := range []struct {
		mend string
		on   steps.Side
		want string
	}{
		{"${side}-locks", steps.Both, `fixed on the here by unknown action "${side}-locks"`},
		{"${side}-keys", steps.Remote, "is on one side and names the action that fixes it by side"},
		{"over-${side}", steps.Both, "fixed on the there by action over-there, which is on the other side"},
		{"no-such", steps.Local, `unknown action "no-such"`},
	} {
		err := engine.Validate([]*steps.Guide{keysGuide(c.mend, c.on)}, fstest.MapFS{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %s: it says %v", c.mend, c.on, err)
		}
	}
}
