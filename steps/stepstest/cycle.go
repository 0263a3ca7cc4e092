package stepstest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/host"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// Open opens a session of a link on the real API servers of the sandbox. answers has the same format as in a link file.
// It includes the answers to secret questions.
func Open(
	t testing.TB, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, name string, answers map[string]any,
) *engine.Session {
	t.Helper()
	ends := map[steps.Side]engine.Endpoint{}
	for _, side := range steps.Sides {
		if g.Sides[side].Kind == steps.Host {
			ends[side] = hostEnd(t, box, side)
			continue
		}
		ends[side] = engine.Endpoint{Cluster: box.Open(t, string(side), cluster.Options{}), Name: box.Contexts[string(side)]}
	}
	return OpenWith(t, g, assets, name, answers, ends)
}

// hostEnd opens the directory that represents a machine of the seeded scenario. The test's cleanup closes it.
func hostEnd(t testing.TB, box *clustertest.Sandbox, side steps.Side) engine.Endpoint {
	t.Helper()
	h, err := host.NewWith(box.Hosts[string(side)], host.Options{Here: box.Here[string(side)]})
	if err != nil {
		t.Fatalf("%s: %v", side, err)
	}
	t.Cleanup(h.Close)
	return engine.Endpoint{Host: h, Name: h.Root}
}

// spec returns a link file's description of a side of the sandbox.
func spec(box *clustertest.Sandbox, g *steps.Guide, side steps.Side, access kubeconfig.Access) linkfile.EndpointSpec {
	if g.Sides[side].Kind == steps.Host {
		return linkfile.EndpointSpec{Host: &linkfile.HostSpec{Root: box.Hosts[string(side)], Here: box.Here[string(side)]}}
	}
	return linkfile.EndpointSpec{Context: access.Context, Kubeconfig: access.Kubeconfig}
}

func clusters(g *steps.Guide) []steps.Side {
	return slices.DeleteFunc(
		slices.Clone(steps.Sides), func(side steps.Side) bool { return g.Sides[side].Kind == steps.Host },
	)
}

// ground returns the side whose cluster tests read, break and fix. This is the remote side. If the remote side is a
// machine or optional, it is the local side.
func ground(g *steps.Guide) steps.Side {
	if remote := g.Sides[steps.Remote]; remote.Kind == steps.Host || remote.Optional {
		return steps.Local
	}
	return steps.Remote
}

// OpenWith opens a session of a link between the given endpoints.
func OpenWith(
	t testing.TB, g *steps.Guide, assets fs.FS, name string, answers map[string]any, ends map[steps.Side]engine.Endpoint,
) *engine.Session {
	t.Helper()
	link, secrets := linkfile.New(g.Name, name), map[string]masked.Value{}
	for key, v := range answers {
		q, _ := g.Question(key)
		if q == nil {
			t.Fatalf("the guide has no question %q", key)
		}
		if q.Secret {
			secrets[key] = masked.New(fmt.Sprint(v))
			continue
		}
		var err error
		if link.Answers[key], err = q.Accept(v); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	return engine.NewSession(
		engine.SessionOptions{Guide: g, Link: link, Endpoints: ends, Assets: assets, Secrets: secrets, Attended: true},
	)
}

// Apply applies everything that the answers of a link configure. It fails the test on an error.
func Apply(t testing.TB, s *engine.Session, o ...steps.ApplyOptions) *engine.Plan {
	t.Helper()
	options := steps.ApplyOptions{}
	if len(o) > 0 {
		options = o[0]
	}
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	if err := s.Apply(t.Context(), p, options, nil); err != nil {
		t.Fatalf("apply: %v", err)
	}
	return p
}

// Undo reverts what a link created. It fails the test on an error.
func Undo(t testing.TB, s *engine.Session) *engine.Plan {
	t.Helper()
	return undo(t, s, nil)
}

func undo(t testing.TB, s *engine.Session, say steps.Progress) *engine.Plan {
	t.Helper()
	p, err := s.PlanUndo(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatalf("plan the undo: %v", err)
	}
	if err := s.Undo(t.Context(), p, say); err != nil {
		t.Fatalf("undo: %v", err)
	}
	return p
}

// undoEach undoes a link like Undo. It fails the test if an action has something to undo but changes nothing. The
// actions in gone are exempt. Without this check, a broken undo could go unnoticed, because its objects are deleted
// along with others.
func undoEach(t testing.TB, s *engine.Session, gone []string) *engine.Plan {
	t.Helper()
	type at struct {
		action string
		side   steps.Side
	}
	did := map[at]bool{}
	p := undo(t, s, func(e steps.Event) {
		if e.Verb.Changes() {
			did[at{e.Action, e.Side}] = true
		}
	})
	for _, a := range p.Actions {
		changes := slices.ContainsFunc(a.Change.Items, func(i steps.Item) bool { return i.Verb.Changes() })
		if changes && !did[at{a.Action, a.Side}] && !slices.Contains(gone, a.Action) {
			t.Errorf(
				"undo of action %s on the %s was planned but changed nothing; another action may have deleted its objects",
				a.Action, a.Side,
			)
		}
	}
	return p
}

func refused(t *testing.T, s *engine.Session) {
	t.Helper()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	var at *engine.ActionError
	err = s.Apply(t.Context(), p, steps.ApplyOptions{}, nil)
	if !errors.As(err, new(*action.ConflictError)) || !errors.As(err, &at) {
		t.Errorf("a field of another user is overwritten without a conflict: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), greenWithin)
	defer cancel()
	var broken []string
	if s.Follow(ctx, s.Guide().Cells(), func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
		broken = nil
		for _, c := range s.Guide().Cells() {
			check, _ := s.Guide().Check(c.Check)
			by, _ := s.Guide().FixingAction(check, c.Side)
			switch v := b.Verdict(c); {
			case v.Status == steps.Pending:
				return true
			case by != nil && by.Name == at.Action && v.Made:
				broken = append(broken, c.Check+": "+v.Found)
			}
		}
		return len(broken) > 0
	}) != nil {
		t.Errorf("these count as broken, but action %s has written nothing: %q", at.Action, broken)
	}
}

// greenWithin is how long checks can take to pass after a change. It is a limit for slow machines, not a budget.
const greenWithin = 5 * time.Minute

// Green fails the test unless every check passes in time. It lists those that do not.
func Green(t testing.TB, s *engine.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), greenWithin)
	defer cancel()
	var last, waited []string
	began := time.Now()
	err := s.Follow(ctx, s.Guide().Cells(), func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
		last = nil
		for _, c := range s.Guide().Cells() {
			if v := b.Verdict(c); v.Status != steps.Pass && v.Status != steps.Skip && v.Status != steps.Warn {
				last = append(last, fmt.Sprintf("%s %s: %s: %s", c.Side, c.Check, v.Status, v.Found))
			}
		}
		if len(last) > 0 {
			waited = last
		}
		return len(last) > 0
	})
	if took := time.Since(began); took > 5*time.Second {
		t.Logf("green after %s; the last checks to pass:\n%s", took.Round(time.Second), strings.Join(waited, "\n"))
	}
	if err != nil {
		t.Errorf("not green:\n%s", strings.Join(last, "\n"))
	}
}

// Once returns the first verdict of a check whose status satisfies meant. It fails the test if there is none in time. A
// session learns of a change to a cluster a moment after the change.
func Once(
	t testing.TB, s *engine.Session, check string, side steps.Side, meant func(steps.Status) bool,
) (v steps.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), greenWithin)
	defer cancel()
	_, step := s.Guide().Check(check)
	cell := steps.Cell{Step: step.Name, Check: check, Side: side}
	if err := s.Follow(ctx, []steps.Cell{cell}, func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
		v = b.Verdict(cell)
		return !meant(v.Status)
	}); err != nil {
		t.Errorf("%s: %v", check, err)
	}
	return v
}

// Given returns the answers of autoplay for the last seeded scenario, as in a link file. more overrides some of them.
func Given(t testing.TB, box *clustertest.Sandbox, g *steps.Guide, more map[string]any) map[string]any {
	t.Helper()
	out := parsed(t, g, box.Answers)
	maps.Copy(out, more)
	return out
}

func parsed(t testing.TB, g *steps.Guide, answers map[string]string) map[string]any {
	t.Helper()
	out := map[string]any{}
	for key, typed := range answers {
		q, _ := g.Question(key)
		if q == nil {
			t.Fatalf("the scenario sets %q, which is not a question of the guide", key)
		}
		var err error
		if out[key], err = q.Parse(typed); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	return out
}

// Cycle verifies on real API servers that apply makes all checks pass, that a second apply changes nothing, and that
// undo restores both sides. Other components can create objects in reaction to carrick's changes. The functions in
// theirs report such objects, which Cycle ignores. Cycle returns the actions that undo reverted.
func Cycle(
	t *testing.T, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, name string, answers map[string]any,
	theirs ...func(name string) bool,
) []string {
	t.Helper()
	return cycle(t, box, g, assets, name, answers, steps.ApplyOptions{}, theirs)
}

// CycleBut is like Cycle, but another system can delete what the actions in gone created. Their undo then finds nothing
// left.
func CycleBut(
	t *testing.T, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, name string, answers map[string]any,
	gone ...string,
) []string {
	t.Helper()
	return cycle(t, box, g, assets, name, answers, steps.ApplyOptions{}, nil, gone...)
}

// CycleOver is like Cycle, for a guide that edits another user's objects, such as a chart's. The first apply is
// rejected, and the second one takes over the fields.
func CycleOver(
	t *testing.T, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, name string, answers map[string]any,
	theirs ...func(name string) bool,
) []string {
	t.Helper()
	return cycle(t, box, g, assets, name, answers, steps.ApplyOptions{TakeOver: true}, theirs)
}

// unchanged fails the test if carrick reports drift in what it has just written.
func unchanged(t testing.TB, s *engine.Session) {
	t.Helper()
	cells := slices.DeleteFunc(s.Guide().Cells(), func(c steps.Cell) bool { return !action.IsDrift(c.Check) })
	b, _ := s.Look(t.Context(), cells)
	for _, c := range cells {
		v := b.Verdict(c)
		if v.Status != steps.Pass && v.Status != steps.Skip {
			t.Errorf("%s %s: %s: %s; %v", c.Side, c.Check, v.Status, v.Found, v.Err)
		}
		t.Logf("%s %s: %s: %s", c.Side, c.Check, v.Status, v.Found)
	}
}

func cycle(
	t *testing.T, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS, name string, answers map[string]any,
	o steps.ApplyOptions, theirs []func(name string) bool, gone ...string,
) []string {
	t.Helper()
	s := Open(t, box, action.WithDrift(g), assets, name, answers)
	snapshot := func() map[string]string {
		out := Snapshot(t, box)
		for _, is := range theirs {
			maps.DeleteFunc(out, func(name, _ string) bool { return is(name) })
		}
		return out
	}
	before := snapshot()
	if o.TakeOver {
		refused(t, s)
	}
	if p := Apply(t, s, o); p.Empty() {
		t.Fatal("the plan was empty, so the test proves nothing")
	}
	Green(t, s)
	again, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if !again.Empty() {
		t.Errorf("a second apply would change: %+v", again.Actions)
	}
	unchanged(t, s)
	p := undoEach(t, s, gone)
	if d := cmp.Diff(before, snapshot()); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
	var undone []string
	for _, a := range p.Actions {
		if slices.ContainsFunc(a.Change.Items, func(i steps.Item) bool { return i.Verb.Changes() }) {
			undone = append(undone, a.Action)
		}
	}
	return undone
}
