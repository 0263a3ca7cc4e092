package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// settling returns a session whose only action takes effect after the given time, and whose check has the timeout
// within. Until then the check waits, or fails with the given result.
func settling(t *testing.T, within, after time.Duration, fails *steps.Result) *engine.Session {
	t.Helper()
	h, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	var made time.Time
	g := guide(
		"settling", steps.Role{Name: "here", Kind: steps.Host}, steps.Role{Name: "there", Kind: steps.Host, Optional: true},
		steps.Step{
			Actions: []steps.Action{{Name: "make", Title: "Make it", On: steps.Local, Doer: action.Call{
				Preview: func(context.Context, steps.Env) (steps.Change, error) {
					if !made.IsZero() {
						return steps.Change{}, nil
					}
					return steps.Change{Items: []steps.Item{{Verb: steps.Create, What: "it"}}}, nil
				},
				Make:  func(context.Context, steps.Env, steps.Progress) error { made = time.Now(); return nil },
				Keeps: "it stays",
			}}},
			Checks: []steps.Check{
				{
					Name: "there", Title: "it is there", Why: "w", On: steps.Local, FixedBy: "make", Timeout: within,
					Run: func(context.Context, steps.Env) steps.Result {
						if !made.IsZero() && time.Since(made) >= after {
							return steps.Passed("it is there")
						}
						r := steps.Waits(made, "not yet")
						if fails != nil {
							r = *fails
						}
						r.Again = time.Now().Add(5 * time.Second)
						return r
					},
				},
			},
		},
	)
	return engine.NewSession(engine.SessionOptions{
		Guide: g, Link: linkfile.New("settling", "l"), Endpoints: map[steps.Side]engine.Endpoint{steps.Local: {Host: h}},
	})
}

// Apply waits for a waiting check until the check's timeout, for a failing check for a minute, and not for a failure
// that lasts.
func TestApplyWaitsAsLongAsTheCheckAllows(t *testing.T) {
	fails, lasts := steps.Failed("not at all", ""), steps.Failed("never", "").Permanently()
	for _, tc := range []struct {
		situation     string
		within, after time.Duration
		fails         *steps.Result
		want          string // of the error
		took          time.Duration
	}{
		{"it comes late, and in time", 5 * time.Minute, 90 * time.Second, nil, "", 90 * time.Second},
		{"it comes too late", 2 * time.Minute, time.Hour, nil, "not yet", 2 * time.Minute},
		{"it fails", 5 * time.Minute, time.Hour, &fails, "not at all", time.Minute},
		{"it fails permanently", 5 * time.Minute, time.Hour, &lasts, "never", 0},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := settling(t, tc.within, tc.after, tc.fails)
				plan, err := s.Plan(t.Context(), engine.Scope{})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				err = s.Apply(t.Context(), plan, steps.ApplyOptions{}, func(steps.Event) {})
				if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("it says %v", err)
				}
				if took := time.Since(start); took < tc.took || took > tc.took+20*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A check is skipped because its object was not read yet. It runs again once its need holds.
func TestASkipThatIsTooEarlyIsNotTakenForDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settling(t, 0, 0, nil)
		g := s.Guide()
		made := time.Now()
		soon := func(r steps.Result) steps.Result { r.Again = time.Now().Add(time.Second); return r }
		seen := func() bool { return time.Since(made) > 3*time.Second }
		st := &g.Steps[0]
		st.Checks = append(
			st.Checks,
			steps.Check{
				Name: "seen", Title: "it is seen", Why: "w", On: steps.Local, Run: func(context.Context, steps.Env) steps.Result {
					if seen() {
						return steps.Passed("seen")
					}
					return soon(steps.Errored(steps.Absent("there is none")))
				},
			},
		)
		looks := 0
		st.Checks[0].Needs = []string{"seen"}
		st.Checks[0].Run = func(context.Context, steps.Env) steps.Result {
			if looks++; !seen() {
				return steps.Errored(steps.Absent("there is none"))
			}
			return steps.Passed("there")
		}
		plan, err := s.Plan(t.Context(), engine.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := s.Apply(t.Context(), plan, steps.ApplyOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 3*time.Second || took > 5*time.Second || looks != 2 {
			t.Errorf("it took %s and %d looks", took, looks)
		}
	})
}
