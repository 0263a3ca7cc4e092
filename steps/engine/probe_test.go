package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"carrick/cluster/host"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

func probed(t *testing.T, run func(context.Context, steps.Env) steps.Result) *engine.Session {
	t.Helper()
	h, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	g := guide(
		"probed", steps.Role{Name: "here", Kind: steps.Host}, steps.Role{Name: "there", Kind: steps.Host, Optional: true},
		steps.Step{
			Checks: []steps.Check{{Name: "odd", Title: "odd", Why: "w", On: steps.Local, Run: run}},
		},
	)
	return engine.NewSession(engine.SessionOptions{
		Guide: g, Link: linkfile.New("probed", "l"), Endpoints: map[steps.Side]engine.Endpoint{steps.Local: {Host: h}},
	})
}

// A check that ignores its context blocks neither the board nor its shutdown.
func TestACheckThatNeverEndsIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		s := probed(t, func(context.Context, steps.Env) steps.Result { <-over; return steps.Passed("at last") })
		start := time.Now()
		r, _ := s.Probe(t.Context(), cell("odd", steps.Local))
		if r.Status != steps.Unknown || time.Since(start) > time.Minute {
			t.Errorf("after %s: %v %q", time.Since(start), r.Status, r.Found)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start = time.Now()
		if r, _ := s.Probe(ctx, cell("odd", steps.Local)); r.Status == steps.Pass || time.Since(start) > 2*time.Second {
			t.Errorf("after %s: %v", time.Since(start), r.Status)
		}
		close(over)
	})
}

func TestAPassThatComesTooLateIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := probed(t, func(ctx context.Context, _ steps.Env) steps.Result { <-ctx.Done(); return steps.Passed("whatever") })
		if r, _ := s.Probe(t.Context(), cell("odd", steps.Local)); r.Status != steps.Unknown {
			t.Errorf("%v %q", r.Status, r.Found)
		}
	})
}

// A check whose reads were cut at its time limit runs again soon: nothing that it read can wake it.
func TestACheckThatComesTooLateRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := true
		s := probed(t, func(ctx context.Context, _ steps.Env) steps.Result {
			_, err := tracked.Look(ctx, "slow", time.Minute, func(ctx context.Context) (bool, error) {
				if slow {
					<-ctx.Done()
				}
				return true, context.Cause(ctx)
			})
			if err != nil {
				return steps.Errored(err)
			}
			return steps.Passed("at last")
		})
		r, trace := s.Probe(t.Context(), cell("odd", steps.Local))
		if r.Status != steps.Unknown {
			t.Fatalf("%v %q", r.Status, r.Found)
		}
		slow = false
		start := time.Now()
		if err := s.Changed(t.Context(), trace); err != nil || time.Since(start) > 10*time.Second {
			t.Errorf("due after %s: %v", time.Since(start), err)
		}
		if r, _ = s.Probe(t.Context(), cell("odd", steps.Local)); r.Status != steps.Pass {
			t.Errorf("%v %q", r.Status, r.Found)
		}
	})
}

func TestACheckThatPanicsIsUnknown(t *testing.T) {
	s := probed(t, func(context.Context, steps.Env) steps.Result { panic("oh") })
	if r, _ := s.Probe(t.Context(), cell("odd", steps.Local)); r.Status != steps.Unknown {
		t.Errorf("%v %q", r.Status, r.Found)
	}
}
