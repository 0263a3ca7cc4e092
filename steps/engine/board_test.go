package engine_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

func chainGuide() *steps.Guide {
	run := func(context.Context, steps.Env) steps.Result { return steps.Passed("") }
	c := func(name string, on steps.Side, needs ...string) steps.Check {
		return steps.Check{Name: name, Title: "the " + name + " holds", Why: "w", On: on, Needs: needs, Run: run}
	}
	return guide(
		"chain", steps.Role{Name: "here", Kind: steps.Host}, steps.Role{Name: "there", Kind: steps.Host}, steps.Step{
			Checks: []steps.Check{
				c("a", steps.Both), c("b", steps.Both, "a"), c("c", steps.Local, "b"), c("d", steps.Remote, "peer/c"),
				c("e", steps.Both, "c"),
			},
		},
	)
}

func cell(check string, side steps.Side) steps.Cell {
	return steps.Cell{Step: "one", Check: check, Side: side}
}

func TestANeedThatDoesNotHoldMasks(t *testing.T) {
	pass, fail := steps.Passed("ok"), steps.Failed("broken", "mend it")
	for name, c := range map[string]struct {
		a, own steps.Result
		want   steps.Status
	}{
		"pass below pass":      {pass, pass, steps.Pass},
		"pass below fail":      {fail, pass, steps.Skip},
		"fail below fail":      {fail, fail, steps.Skip},
		"pass below a warning": {steps.Warned("w", ""), pass, steps.Pass},
		"pass below unknown":   {steps.Errored(context.DeadlineExceeded), pass, steps.Skip},
		"unknown below unknown": {
			steps.Errored(context.DeadlineExceeded), steps.Errored(context.DeadlineExceeded), steps.Unknown,
		},
		"unknown below fail": {fail, steps.Errored(context.DeadlineExceeded), steps.Skip},
		"pass below waiting": {steps.Waits(time.Now(), "starts"), pass, steps.Skip},
		"pass below pending": {steps.Result{}, pass, steps.Pending},
		"pass below a skip":  {steps.Skipped("because"), pass, steps.Skip},
	} {
		t.Run(name, func(t *testing.T) {
			b := engine.NewBoard(chainGuide())
			b.Put(cell("a", steps.Local), c.a)
			b.Put(cell("b", steps.Local), c.own)
			if got := b.Verdict(cell("b", steps.Local)); got.Status != c.want {
				t.Errorf("got %v %q, want %v", got.Status, got.Found, c.want)
			}
		})
	}
}

func TestTheRootIsNamedAcrossSides(t *testing.T) {
	b := engine.NewBoard(chainGuide())
	for _, c := range chainGuide().Cells() {
		b.Put(c, steps.Passed("ok"))
	}
	b.Put(cell("a", steps.Local), steps.Failed("broken", ""))
	d := b.Verdict(cell("d", steps.Remote))
	if d.Status != steps.Skip || !strings.Contains(d.Found, "blocked by a on the here, which failed") {
		t.Errorf("got %v %q", d.Status, d.Found)
	}
	if n := b.Causes()[cell("a", steps.Local)]; n != 5 { // b, c, d, and e on both sides: c has one side
		t.Errorf("a causes %d others, want 5", n)
	}
	if got := b.Verdict(cell("b", steps.Remote)).Status; got != steps.Pass {
		t.Errorf("the other side is %v", got)
	}
}

func hostSession(t *testing.T, g *steps.Guide) *engine.Session {
	t.Helper()
	ends := map[steps.Side]engine.Endpoint{}
	for _, side := range steps.Sides {
		h, err := host.New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		ends[side] = engine.Endpoint{Host: h, Name: string(side)}
	}
	s := engine.NewSession(engine.SessionOptions{Guide: g, Link: linkfile.New(g.Name, "x"), Endpoints: ends})
	t.Cleanup(s.Close)
	return s
}

func TestProbe(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		run  func(context.Context, steps.Env) steps.Result
		want steps.Status
		says string
	}{
		"a panic is unknown": {
			func(context.Context, steps.Env) steps.Result { panic("boom") }, steps.Unknown,
			"internal error in this check (please report): boom",
		},
		"waiting is overdue": {
			func(context.Context, steps.Env) steps.Result { return steps.Waits(long, "starts") }, steps.Fail,
			"the limit is 1m0s",
		},
		"waiting waits": {
			func(context.Context, steps.Env) steps.Result { return steps.Waits(time.Now(), "starts") }, steps.Waiting, "starts",
		},
		"a missing answer is a skip": {
			func(_ context.Context, e steps.Env) steps.Result { return steps.Passed(e.Answers.Text("port")) }, steps.Skip,
			"not answered yet: port (Port)",
		},
		"an escape sequence is cleaned": {func(context.Context, steps.Env) steps.Result {
			return steps.Failed("evil \x1b]0;x\x07name", "")
		}, steps.Fail, "evil name"},
		"an absent fact is a skip": {func(_ context.Context, e steps.Env) steps.Result {
			_, err := e.Peer.Text("id")
			return steps.Errored(err)
		}, steps.Skip, "there is no id yet"},
		"a fact that fails is unknown": {func(_ context.Context, e steps.Env) steps.Result {
			_, err := e.Own.Text("id")
			return steps.Errored(err)
		}, steps.Unknown, ""},
		"an unreadable default unknown": {
			func(_ context.Context, e steps.Env) steps.Result { return steps.Passed(e.Answers.Text("size")) }, steps.Unknown, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := chainGuide()
			g.Steps[0].Ask = []steps.Question{
				{Key: "port", Title: "Port", Help: "h", Kind: steps.Port},
				{Key: "size", Title: "Size", Help: "h", Kind: steps.Text, Opt: true, Default: steps.FromFact("id", "there")},
			}
			g.Steps[0].Facts = []steps.Fact{
				{
					Name: "id", On: steps.Local, Shared: true,
					Learn: func(context.Context, steps.Env) (any, error) { return nil, context.DeadlineExceeded },
				},
				{
					Name: "id", On: steps.Remote, Shared: true,
					Learn: func(context.Context, steps.Env) (any, error) { return nil, steps.Absent("there is no id yet") },
				},
			}
			g.Steps[0].Checks[0].Run, g.Steps[0].Checks[0].Timeout = c.run, time.Minute
			r, _ := hostSession(t, g).Probe(t.Context(), cell("a", steps.Local))
			if r.Status != c.want || !strings.Contains(r.Found, c.says) {
				t.Errorf("got %v %q, want %v %q", r.Status, r.Found, c.want, c.says)
			}
		})
	}
}

// What has passed is overdue only after it has not passed for the whole time, however old its object is.
func TestWaitingCountsFromTheLastPass(t *testing.T) {
	g, works := chainGuide(), true
	g.Steps[0].Checks[0].Timeout = time.Minute
	g.Steps[0].Checks[0].Run = func(context.Context, steps.Env) steps.Result {
		if works {
			return steps.Passed("it runs")
		}
		return steps.Waits(time.Now().Add(-time.Hour), "starts")
	}
	s := hostSession(t, g)
	for _, want := range []steps.Status{steps.Pass, steps.Waiting} {
		if r, _ := s.Probe(t.Context(), cell("a", steps.Local)); r.Status != want {
			t.Errorf("got %v %q, want %v", r.Status, r.Found, want)
		}
		works = false
	}
}

// A probe reads a fact once, however often it uses the fact, even through defaults. The next probe reads it again.
func TestAFactIsTheSameForAllOfAProbe(t *testing.T) {
	g, learnt := chainGuide(), 0
	g.Steps[0].Ask = []steps.Question{
		{Key: "size", Title: "Size", Help: "h", Kind: steps.Text, Default: steps.FromFact("id", "here")},
	}
	g.Steps[0].Facts = []steps.Fact{{Name: "id", On: steps.Local, Learn: func(context.Context, steps.Env) (any, error) {
		learnt++
		return strconv.Itoa(learnt), nil
	}}}
	g.Steps[0].Checks[0].Run = func(_ context.Context, e steps.Env) steps.Result {
		return steps.Passed("%s and %s", e.Answers.Text("size"), e.Answers.Text("size"))
	}
	s := hostSession(t, g)
	for _, want := range []string{"1 and 1", "2 and 2"} {
		if r, _ := s.Probe(t.Context(), cell("a", steps.Local)); r.Status != steps.Pass || r.Found != want {
			t.Errorf("got %v %q, want %q", r.Status, r.Found, want)
		}
	}
}

// A change between Probe and Changed is not lost. A new answer is such a change.
func TestAnAnswerWakesWhatUsedIt(t *testing.T) {
	g := chainGuide()
	g.Steps[0].Ask = []steps.Question{{Key: "port", Title: "Port", Help: "h", Kind: steps.Port}}
	g.Steps[0].Checks[0].Run = func(
		_ context.Context, e steps.Env,
	) steps.Result {
		return steps.Passed("%d", e.Answers.Int("port"))
	}
	s := hostSession(t, g)
	_, trace := s.Probe(t.Context(), cell("a", steps.Local))
	if err := s.Answer("port", 8443); err != nil {
		t.Fatal(err)
	}
	if err := s.Changed(t.Context(), trace); err != nil {
		t.Fatal(err)
	}
	if r, _ := s.Probe(t.Context(), cell("a", steps.Local)); r.Status != steps.Pass || r.Found != "8443" {
		t.Errorf("got %v %q", r.Status, r.Found)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Changed(ctx, trace); err != context.Canceled {
		t.Errorf("got %v, want the context's error", err)
	}
}

// An optional question that was deliberately left empty stays empty, although it has a default.
func TestLeftEmptyOnPurpose(t *testing.T) {
	g := chainGuide()
	g.Steps[0].Ask = []steps.Question{
		{Key: "class", Title: "Class", Help: "h", Kind: steps.Name, Opt: true, Default: steps.Fixed("standard", "usual")},
	}
	s := hostSession(t, g)
	if a := s.Answers(t.Context(), &g.Steps[0])[0]; a.Value != "standard" || a.From != "usual" {
		t.Fatalf("the default is %v from %q", a.Value, a.From)
	}
	empty, err := g.Steps[0].Ask[0].Accept("")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Answer("class", empty); err != nil {
		t.Fatal(err)
	}
	if a := s.Answers(t.Context(), &g.Steps[0])[0]; a.Value != nil || a.From != "given" {
		t.Errorf("left empty, it is %v from %q", a.Value, a.From)
	}
}

// A drift check that reports something as gone is a warning beside the failure of a check that the same action fixes.
func TestWhatIsGoneIsReportedOnce(t *testing.T) {
	g := chainGuide()
	check := g.Steps[0].Checks[0]
	check.Name, check.FixedBy, check.On, check.Needs = "first", "first", steps.Local, nil
	g.Steps = []steps.Step{{
		Name: "step", Title: "step", Checks: []steps.Check{check},
		Actions: []steps.Action{{Name: "first", Title: "first", On: steps.Local, Doer: action.Manifest{}}},
	}}
	action.WithDrift(g)
	drift := steps.Cell{Step: "step", Check: "step-unchanged", Side: steps.Local}
	for first, want := range map[steps.Status]steps.Status{
		steps.Fail: steps.Warn, steps.Pass: steps.Fail, steps.Unknown: steps.Fail,
	} {
		b := engine.NewBoard(g)
		b.Put(steps.Cell{Step: "step", Check: "first", Side: steps.Local}, steps.Result{Status: first})
		b.Put(drift, steps.Failed("Role r is gone", "").FixedBy("first"))
		if got := b.Verdict(drift).Status; got != want {
			t.Errorf("beside %s the drift check is %s, want %s", first, got, want)
		}
	}
}

// While a plan is being applied, what its actions fix is to do. Other failures are still failures.
func TestWhatARunIsAboutToFixIsNotBroken(t *testing.T) {
	g := chainGuide()
	check := g.Steps[0].Checks[0]
	check.Name, check.FixedBy, check.On, check.Needs = "first", "first", steps.Local, nil
	other := check
	other.Name, other.FixedBy = "other", ""
	g.Steps = []steps.Step{{
		Name: "step", Title: "step", Checks: []steps.Check{check, other},
		Actions: []steps.Action{{Name: "first", Title: "first", On: steps.Local, Doer: action.Manifest{}}},
	}}
	b := engine.NewBoard(g)
	made := steps.Failed("wrong", "")
	made.Made = true
	for _, c := range g.Cells() {
		b.Put(c, made)
	}
	states := func() [2]engine.State { return [2]engine.State{b.State(g.Cells()[0]), b.State(g.Cells()[1])} }
	before := states()
	b.SetRunning(&engine.Plan{Actions: []engine.Planned{{Step: "step", Action: "first", Side: steps.Local}}})
	during := states()
	b.SetRunning(&engine.Plan{Undo: true, Actions: []engine.Planned{{Step: "step", Action: "first", Side: steps.Local}}})
	undoing := states()
	b.SetRunning(nil)
	broken := [2]engine.State{engine.Failed, engine.Failed}
	if undoing != [2]engine.State{engine.ToDo, engine.ToDo} {
		t.Errorf("during undo %v", undoing)
	}
	if before != broken || during != [2]engine.State{engine.ToDo, engine.Failed} || states() != broken {
		t.Errorf("before %v, during %v, after %v", before, during, states())
	}
}
