package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carrick/cluster"
	"carrick/cluster/tracked"
)

func TestALookIsKeptForItsAgeAndThenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := tracked.WithLooks(t.Context(), tracked.NewLooks())
		looked := 0
		look := func() *tracked.Trace {
			ctx, trace := tracked.WithTrace(base)
			n, err := tracked.Look(ctx, "tcp/a", time.Minute, func(context.Context) (int, error) {
				looked++
				return looked, nil
			})
			if err != nil || n != looked {
				t.Errorf("got %d, %v", n, err)
			}
			return trace
		}
		look()
		time.Sleep(30 * time.Second) // the bubble's clock
		trace := look()
		if looked != 1 {
			t.Errorf("%d looks in half the age", looked)
		}
		if at, polled := trace.Seen(); polled || time.Since(at) != 30*time.Second {
			t.Errorf("seen %v ago, %v", time.Since(at), polled)
		}
		start := time.Now()
		if err := trace.Wait(t.Context()); err != nil || time.Since(start) != 30*time.Second {
			t.Errorf("due after %v: %v", time.Since(start), err)
		}
		look()
		if looked != 2 {
			t.Errorf("%d looks after the age", looked)
		}
	})
}

func TestAnErrorIsKeptForFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, trace := tracked.WithTrace(tracked.WithLooks(t.Context(), tracked.NewLooks()))
		looked := 0
		for range 3 {
			_, err := tracked.Look(ctx, "tcp/a", time.Minute, func(context.Context) (int, error) {
				looked++
				return 0, errors.New("refused")
			})
			if err == nil || err.Error() != "refused" {
				t.Error(err)
			}
		}
		start := time.Now()
		_ = trace.Wait(t.Context())
		if looked != 1 || time.Since(start) != 5*time.Second {
			t.Errorf("%d looks, due after %v", looked, time.Since(start))
		}
	})
}

// A caller whose time limit cuts a look has read nothing that could wake it.
func TestALookThatIsCutIsDueAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, trace := tracked.WithTrace(tracked.WithLooks(t.Context(), tracked.NewLooks()))
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := tracked.Look(short, "slow", time.Minute, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		start := time.Now()
		_ = trace.Wait(t.Context())
		if time.Since(start) != tracked.ErrorAge {
			t.Errorf("due after %v", time.Since(start))
		}
	})
}

func TestLooksAtTheSameTimeAreOneAndSurviveTheFirstToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := tracked.WithLooks(t.Context(), tracked.NewLooks())
		looked, ended := 0, false
		look := func(ctx context.Context) (string, error) {
			return tracked.Look(ctx, "k", time.Minute, func(ctx context.Context) (string, error) {
				looked++
				select {
				case <-time.After(time.Second):
					return "seen", nil
				case <-ctx.Done():
					ended = true
					return "", context.Cause(ctx)
				}
			})
		}
		why := errors.New("left")
		first, leave := context.WithCancelCause(base)
		errs := make(chan error, 2)
		go func() { _, err := look(first); errs <- err }()
		synctest.Wait()
		go func() {
			got, err := look(base)
			if got != "seen" {
				t.Errorf("got %q", got)
			}
			errs <- err
		}()
		synctest.Wait()
		leave(why)
		if err := <-errs; !errors.Is(err, why) {
			t.Error(err)
		}
		if err := <-errs; err != nil || looked != 1 {
			t.Errorf("%v, %d looks", err, looked)
		}
		// the last to leave ends it
		alone, leave := context.WithCancelCause(tracked.WithLooks(t.Context(), tracked.NewLooks()))
		go func() { _, err := look(alone); errs <- err }()
		synctest.Wait()
		leave(why)
		<-errs
		synctest.Wait()
		if !ended {
			t.Error("a look goes on that nobody waits for")
		}
	})
}

func TestForgettingALookWakesWhoUsedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := tracked.NewLooks()
		ctx, trace := tracked.WithTrace(tracked.WithLooks(t.Context(), looks))
		look := func(key string) int {
			n, _ := tracked.Look(ctx, key, time.Hour, func(context.Context) (int, error) { return int(time.Now().Unix()), nil })
			return n
		}
		a, b := look("tcp/a"), look("tls/a")
		time.Sleep(time.Minute) // the bubble's clock
		looks.Forget("tcp/")
		start := time.Now()
		if err := trace.Wait(t.Context()); err != nil || time.Since(start) > time.Second {
			t.Errorf("woken after %v: %v", time.Since(start), err)
		}
		if look("tcp/a") == a || look("tls/a") != b {
			t.Error("the wrong look was forgotten")
		}
	})
}

func TestLooksOfOneKeyAndTwoTypesAreTwo(t *testing.T) {
	ctx := tracked.WithLooks(t.Context(), tracked.NewLooks())
	_, _ = tracked.Look(ctx, "k", time.Hour, func(context.Context) (int, error) { return 1, nil })
	got, err := tracked.Look(ctx, "k", time.Hour, func(context.Context) (string, error) { return "one", nil })
	if got != "one" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAPanicInALookIsAnError(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"kept": tracked.WithLooks(t.Context(), tracked.NewLooks()), "not kept": t.Context(),
	} {
		_, err := tracked.Look(ctx, "k", time.Hour, func(context.Context) (int, error) { panic("no") })
		if err == nil || !strings.Contains(err.Error(), "panicked: no") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatALookReadsCountsForWhoUsesIt(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		c := api.open(cluster.Options{})
		looks := tracked.NewLooks()
		looked := 0
		look := func() *tracked.Trace {
			ctx, trace := tracked.WithTrace(tracked.WithLooks(t.Context(), looks))
			_, _ = tracked.Look(ctx, "k", time.Hour, func(ctx context.Context) (string, error) {
				looked++
				_, err := c.Get(ctx, configMaps, "a", "x")
				return "", err
			})
			return trace
		}
		look()
		trace := look()
		api.put(configMaps, "a", "x", data("2"))
		start := time.Now()
		if err := trace.Wait(t.Context()); err != nil || time.Since(start) > time.Second {
			t.Errorf("woken after %v: %v", time.Since(start), err)
		}
		look()
		if looked != 2 {
			t.Errorf("%d looks", looked)
		}
	})
}

func TestAnAbsorbedTraceCountsWithItsOldestVersions(t *testing.T) {
	bubble(t, func(t *testing.T, api *fakeAPI) {
		api.put(configMaps, "a", "x", data("1"))
		c := api.open(cluster.Options{})
		fact := configMap(t, c, "x").look()
		api.put(configMaps, "a", "x", data("2"))
		synctest.Wait()
		ctx, trace := tracked.WithTrace(t.Context())
		_, _ = c.Get(ctx, configMaps, "a", "x")
		tracked.AbsorbInto(ctx, fact.trace)
		if trace.Reads() != 1 || !trace.Differs() {
			t.Errorf("%d reads, differs %v", trace.Reads(), trace.Differs())
		}
		if err := trace.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestATraceExpiresAtTheEarliestMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, trace := tracked.WithTrace(t.Context())
		tracked.Expires(ctx, time.Now().Add(time.Hour))
		tracked.Expires(ctx, time.Now().Add(time.Minute))
		tracked.Expires(ctx, time.Time{})
		start := time.Now()
		if err := trace.Wait(t.Context()); err != nil || time.Since(start) != time.Minute {
			t.Errorf("woken after %v: %v", time.Since(start), err)
		}
	})
}

func BenchmarkLookThatIsKept(b *testing.B) {
	ctx := tracked.WithLooks(b.Context(), tracked.NewLooks())
	for b.Loop() {
		ctx, _ := tracked.WithTrace(ctx)
		_, _ = tracked.Look(ctx, "k", time.Hour, func(context.Context) (int, error) { return 1, nil })
	}
}
