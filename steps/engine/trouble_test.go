package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

// If two failures depend on each other only by the needs of an action, the failure that the action needs comes first,
// even if it is later in the guide.
func TestTroublesBeginWithWhatOthersLeanOn(t *testing.T) {
	g := chainGuide()
	ask := func(name string, mend string) steps.Check {
		c := g.Steps[0].Checks[0]
		c.Name, c.Title, c.FixedBy, c.On, c.Needs = name, "the "+name+" holds", mend, steps.Local, nil
		return c
	}
	act := func(name string, needs ...string) steps.Action {
		return steps.Action{Name: name, Title: name, On: steps.Local, Needs: needs, Doer: action.Call{}}
	}
	g.Steps[0].Checks = append([]steps.Check{ask("late", "late"), ask("old", "")}, g.Steps[0].Checks...)
	g.Steps[0].Checks = append(g.Steps[0].Checks, ask("first", "first"))
	g.Steps[0].Actions = []steps.Action{act("late", "first"), act("first")}
	b := engine.NewBoard(g)
	for _, c := range g.Cells() {
		b.Put(c, steps.Passed("ok"))
	}
	bad, local := steps.Failed("broken", ""), steps.Local
	b.Put(cell("late", local), bad)
	b.Put(cell("first", local), bad)
	b.Put(cell("old", local), steps.Warned("ends soon", ""))
	b.Put(cell("a", local), steps.Errored(errors.New("silence")))
	b.Put(cell("b", local), steps.Errored(errors.New("silence")))

	var got []string
	for _, tr := range b.Troubles() {
		line := tr.Cell.Check + " " + tr.Result.Status.String()
		if tr.Root {
			line += " root"
		}
		for _, c := range tr.Behind {
			line += " " + c.Check + "@" + string(c.Side)
		}
		got = append(got, line)
	}
	want := []string{
		"a unknown root b@local c@local d@remote e@local e@remote", "first fail root", "late fail root", "b unknown",
		"old warn root",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the list is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An absent object is not a cause as long as nothing of its step or a later step exists. A trial that has not run is
// never a cause.
func TestTroublesEndWithWhatIsNotDoneYet(t *testing.T) {
	g := chainGuide()
	check, act := g.Steps[0].Checks[0], steps.Action{On: steps.Local, Doer: action.Manifest{}}
	g.Steps = nil
	for _, name := range []string{"first", "second", "third"} {
		check.Name, check.Title, check.FixedBy, check.On, check.Needs = name, "the "+name+" exists", name, steps.Local, nil
		asks := check
		asks.Name, asks.FixedBy = name+"-asks", ""
		act.Name, act.Title = name, name
		g.Steps = append(g.Steps, steps.Step{
			Name: name + "-step", Title: name, Checks: []steps.Check{check, asks}, Actions: []steps.Action{act},
		})
	}
	at := func(check string) steps.Cell {
		_, step := g.Check(check)
		return steps.Cell{Step: step.Name, Check: check, Side: steps.Local}
	}
	for _, tc := range []struct {
		situation           string
		first, second, asks steps.Result
		want                []string
	}{
		{
			"nothing exists", steps.Undone("none"), steps.Undone("none"), steps.Failed("broken", ""),
			[]string{"third-asks", "first", "second", "first-asks", "second-asks"},
		},
		{
			"the second exists", steps.Undone("gone"), steps.Passed("ok"), steps.Failed("broken", ""),
			[]string{"third-asks", "first", "first-asks", "second-asks"},
		},
		{
			"a symptom", steps.Failed("not ready", "").Symptom(), steps.Passed("ok"), steps.Failed("broken", ""),
			[]string{"third-asks", "first", "first-asks", "second-asks"},
		},
		{
			"nothing exists and nothing is wrong", steps.Undone("none"), steps.Undone("none"), steps.Passed("ok"),
			[]string{"first", "second", "first-asks", "second-asks"},
		},
	} {
		b := engine.NewBoard(g)
		for check, r := range map[string]steps.Result{
			"first": tc.first, "second": tc.second, "third": steps.Skipped("later"),
			"first-asks": steps.NotTried("not tried"), "second-asks": steps.Warned("ends soon", ""), "third-asks": tc.asks,
		} {
			b.Put(at(check), r)
		}
		var got []string
		for _, tr := range b.Troubles() {
			got = append(got, tr.Cell.Check)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.situation, got, tc.want)
		}
	}
}

// A failure is to do until this link has run the action that fixes it. A check that an answer rules out is off, and a
// check that is blocked comes later.
func TestStatesTellWhatIsBrokenFromWhatIsToDo(t *testing.T) {
	made, gone := steps.Failed("wrong", ""), steps.Undone("gone")
	made.Made, gone.Made = true, true
	for _, tc := range []struct {
		situation string
		first     steps.Result
		want      engine.State
	}{
		{"absent", steps.Undone("none"), engine.ToDo},
		{"wrong, and carrick has not run", steps.Failed("wrong", ""), engine.ToDo},
		{"wrong, although carrick has run", made, engine.Failed},
		{"created and deleted", gone, engine.Failed},
		{"only a person can fix it", steps.Failed("wrong", "do it").WithoutAction(), engine.Failed},
		{"not tried", steps.NotTried("not tried"), engine.ToDo},
		{"not applicable", steps.Skipped(steps.NotAsked), engine.Off},
		{"not checked", steps.Skipped("no reason to"), engine.Skipped},
		{"unknown", steps.Result{Status: steps.Unknown}, engine.Unknown},
	} {
		g := chainGuide()
		check := g.Steps[0].Checks[0]
		check.Name, check.FixedBy, check.On, check.Needs = "first", "first", steps.Local, nil
		next := check
		next.Name, next.FixedBy, next.Needs = "next", "", []string{"first"}
		g.Steps = []steps.Step{{
			Name: "step", Title: "step", Checks: []steps.Check{check, next},
			Actions: []steps.Action{{Name: "first", Title: "first", On: steps.Local, Doer: action.Manifest{}}},
		}}
		b := engine.NewBoard(g)
		first := steps.Cell{Step: "step", Check: "first", Side: steps.Local}
		b.Put(first, tc.first)
		b.Put(steps.Cell{Step: "step", Check: "next", Side: steps.Local}, steps.Passed("ok"))
		if got := b.State(first); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.situation, got, tc.want)
		}
		blocked := b.State(steps.Cell{Step: "step", Check: "next", Side: steps.Local})
		if want := map[bool]engine.State{true: engine.Later, false: engine.OK}[tc.want == engine.ToDo ||
			tc.want == engine.Failed]; tc.first.Status == steps.Fail && blocked != want {
			t.Errorf("%s: what it blocks is %v, want %v", tc.situation, blocked, want)
		}
	}
}

func TestNothingIsWrongOnAGreenBoard(t *testing.T) {
	b := engine.NewBoard(chainGuide())
	for _, c := range chainGuide().Cells() {
		b.Put(c, steps.Passed("ok"))
	}
	if got := b.Troubles(); len(got) != 0 {
		t.Errorf("there are %v", got)
	}
}
