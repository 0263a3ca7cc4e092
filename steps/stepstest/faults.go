package stepstest

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carrick/cluster/clustertest/cases"
	"carrick/cluster/clustertest/proxy"
	"carrick/steps"
	"carrick/steps/engine"
)

// trouble is a kind of fault that affects a whole API server.
type trouble struct {
	fault    proxy.Fault
	stops    bool     // the API server itself is down
	harmless bool     // all results are the same as without the fault
	watches  bool     // the fault affects only watches
	typical  bool     // a brief run includes the fault
	holds    []string // checks that the fault does not affect, so that they still pass
}

const (
	hugeBody  = 65 << 20 // more than carrick accepts
	hugeTimes = 6        // maximum number of such responses, because this machine must generate them; then 503

	watchTimes = 300 // number of affected watches, about two for each watch of a guide

	lookWithin    = 4 * time.Minute // timeout for running all checks during a fault
	applyWithin   = 10 * time.Minute
	noticedWithin = 5 * time.Minute // timeout until no check of the faulty server passes any longer
	recovers      = 5 * time.Minute // timeout until all checks pass again
	mostMemory    = 512 << 20       // maximum memory of carrick during a fault: one large response per side, decoded
	briefly       = 4 * time.Second
)

// troubles returns the faults to test in this run.
func troubles() []trouble {
	return slices.DeleteFunc([]trouble{
		{fault: proxy.Reset(), typical: true},
		{fault: proxy.ResetInBody()},
		{fault: proxy.Throttled(time.Second)},
		{fault: proxy.Broken()},
		{fault: proxy.Unavailable()},
		{fault: proxy.Forbidden(), holds: []string{"reachable"}, typical: true},
		{fault: proxy.Hang()},
		{fault: proxy.NotJSON()},
		{fault: proxy.Huge(hugeBody)},
		{fault: proxy.Short()},
		{fault: proxy.Fault{Name: "an API server that is down"}, stops: true, typical: true},
		{fault: proxy.Latency(200 * time.Millisecond), harmless: true},
		{fault: proxy.CutWatch(300 * time.Millisecond), harmless: true, watches: true},
		{fault: proxy.Expired(), harmless: true, watches: true},
	}, func(x trouble) bool { return cases.Brief() && !x.typical })
}

func (x trouble) rules(kind proxy.Rule) []proxy.Rule {
	kind.Fault = x.fault
	if x.fault.Name == proxy.Huge(0).Name {
		then := kind
		kind.Times, then.Fault = hugeTimes, proxy.Unavailable()
		return []proxy.Rule{kind, then}
	}
	if x.watches { // limits the number of affected watches
		kind.Times = watchTimes
	}
	return []proxy.Rule{kind}
}

// brings injects a fault on a side and closes the open connections, so that every client is affected.
func (s *stage) brings(t *testing.T, x trouble, side steps.Side) {
	t.Helper()
	if x.stops {
		s.box.Stop(t, string(side))
	} else {
		s.way[side].Set(x.rules(proxy.Rule{})...)
	}
	s.way[side].Cut()
}

func (s *stage) ends(t *testing.T, x trouble, side steps.Side) {
	t.Helper()
	if x.stops {
		s.box.Start(t, string(side))
	}
	s.way[side].Set()
}

// Faults verifies how carrick handles a faulty API server. carrick must never report an error as a pass. It must report
// what to do, and it must resume when the fault is over.
func (x Proof) Faults(t *testing.T) {
	t.Parallel()
	cases.LeftOut(t, "fault", x.Guide.Name)
	t.Run("apply", func(t *testing.T) {
		if x.SharedActions {
			t.Skip("other guides test its kinds of actions")
		}
		t.Parallel()
		x.stage(t).faultsOfApply(t)
	})
	t.Run("green", func(t *testing.T) {
		t.Parallel()
		s := x.stage(t)
		s.finish(t, "apply")
		s.holds(t)
		t.Run("check", s.faultsOfCheck)
		t.Run("live", s.faultsOfLive)
		cases.Run(t, "fault", "another user recreates it before it is deleted", s.recreated)
	})
}

// faultsOfCheck runs checks on a green setup while one side has a fault. If both sides are clusters, faultsOfLive
// covers one side and this test the other. Only a server that is down is tested on both sides.
func (s *stage) faultsOfCheck(t *testing.T) {
	s.without(t)
	sides := clusters(s.Guide)
	for _, x := range troubles() {
		for _, side := range sides {
			if len(sides) > 1 && side == ground(s.Guide) && !x.stops {
				continue
			}
			cases.Run(t, "fault", fmt.Sprintf("%s/%s", x.fault.Name, side), func(t *testing.T) { s.checked(t, x, side) })
		}
	}
}

// without reports the sides that are not tested as skipped subtests.
func (s *stage) without(t *testing.T) {
	for _, side := range steps.Sides {
		if s.way[side] == nil {
			t.Run(string(side), func(t *testing.T) {
				t.Skipf("the %s is a machine and has no API server that could fail", side)
			})
		}
	}
}

func (s *stage) checked(t *testing.T, x trouble, side steps.Side) {
	if x.watches {
		t.Skip("a one-time check opens no watch")
	}
	s.brings(t, x, side)
	words := []string{"check", "-o", "json"}
	if x.harmless { // on a busy machine an API server might not answer for seconds, regardless of the fault
		words = append(words, "--wait", "200s")
	}
	r := s.start(t, words...)
	code := r.code(t, lookWithin)
	s.ends(t, x, side)
	s.sane(t, r)
	var report engine.Report
	if err := json.Unmarshal(r.stdout.Bytes(), &report); err != nil {
		t.Fatalf("no report: %v\n%s", err, r.said())
	}
	if x.harmless {
		if code != 0 {
			t.Errorf("exit code %d\n%s", code, notPassed(report))
		}
		return
	}
	if code != 3 && code != 5 {
		t.Errorf("exit code %d", code)
	}
	for _, c := range report.Checks {
		s.honest(t, x, c.Check, c.Side == side, side, steps.Result{Status: c.Status, Found: c.Found, Fix: c.Fix})
	}
	if !x.stops {
		return // the next run keeps no state of this run
	}
	after := s.start(t, "check", "--wait", greenInTime)
	if code := after.code(t, runWithin); code != 0 {
		t.Errorf("after the faults: exit code %d\n%s", code, after.said())
	}
}

// honest fails the test if a verdict claims what can't be known during a fault, or if it has no reason or fix.
func (s *stage) honest(t *testing.T, x trouble, check string, there bool, side steps.Side, v steps.Result) {
	t.Helper()
	blind := slices.Contains(s.Blind[side], check) || slices.Contains(x.holds, check)
	switch {
	case there && v.Status.Holds() && !blind:
		t.Errorf("%s on the %s passes although its API server fails: %s: %s", check, side, v.Status, v.Found)
	case !v.Status.Holds() && v.Found == "":
		t.Errorf("%s: %s, without a reason", check, v.Status)
	case v.Status == steps.Fail && v.Fix == "":
		t.Errorf("%s: %s: %s, without a fix", check, v.Status, v.Found)
	}
}

// sane fails the test if carrick used too much memory or did not end properly.
func (s *stage) sane(t *testing.T, r *run) {
	t.Helper()
	switch held := r.peak(); {
	case held > mostMemory:
		t.Errorf("%s used %d MB", r, held>>20)
	case held == 0 && runtime.GOOS == "linux":
		t.Errorf("%s: its memory use was not measured", r)
	}
	said := r.err.String()
	if n := strings.Count("\n"+said, "\ncarrick: "); n > 1 {
		t.Errorf("%d messages:\n%s", n, said)
	}
	t.Logf(
		"%s: exit code %d after %s, %d MB\n%s", r.cmd.Args[1], r.cmd.ProcessState.ExitCode(), r.took.Round(time.Millisecond),
		r.peak()>>20, lastWords(r),
	)
}

// lastWords returns the message with which a run ended.
func lastWords(r *run) string {
	said := r.err.String()
	return said[max(strings.LastIndex("\n"+said, "\ncarrick: "), 0):]
}

func notPassed(report engine.Report) string {
	var out strings.Builder
	for _, c := range report.Checks {
		if !c.Status.Holds() && c.Status != steps.Skip {
			fmt.Fprintf(&out, "%s: %s: %s\n", c.ID, c.Status, c.Found)
		}
	}
	return out.String()
}

// recreated makes another user recreate an object under the same name between carrick's read and its delete. carrick
// must keep the new object.
func (s *stage) recreated(t *testing.T) {
	of := Remade{"secrets", []string{"secret", "generic"}, []string{"--from-literal=theirs=1"}}
	if s.Remade != nil {
		of = *s.Remade
	}
	var theirs atomic.Pointer[proxy.Request]
	for side, way := range s.way {
		way.Intercept(func(r proxy.Request) bool {
			if r.Verb == "delete" && r.Resource == of.Resource && theirs.CompareAndSwap(nil, &r) {
				s.box.Run(t, string(side), "", "-n", r.Namespace, "delete", r.Resource, r.Name)
				s.box.Run(
					t, string(side), "",
					slices.Concat([]string{"-n", r.Namespace, "create"}, of.Before, []string{r.Name}, of.After)...,
				)
				s.box.Run(t, string(side), "", "-n", r.Namespace, "label", r.Resource, r.Name, "theirs=1")
			}
			return true
		}, nil)
	}
	r := s.start(t, "undo", "--yes")
	code := r.code(t, runWithin)
	s.intercept(nil, nil)
	at := theirs.Load()
	if at == nil {
		t.Fatalf("none of %s was deleted, so the test proves nothing\n%s", of.Resource, r.said())
	}
	for side := range s.way {
		if got := s.box.Run(
			t, string(side), "", "-n", at.Namespace, "get", at.Resource, at.Name, "--ignore-not-found", "-o",
			"jsonpath={.metadata.labels.theirs}",
		); got != "" {
			s.box.Run(t, string(side), "", "-n", at.Namespace, "delete", at.Resource, at.Name)
			t.Logf("%s: exit code %d\n%s", at, code, lastWords(r))
			return
		}
	}
	t.Errorf("%s was deleted, although it already belonged to another user: exit code %d\n%s", at, code, r.said())
}
