package stepstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
)

// followed is a session whose cells are probed continuously, as on a screen.
type followed struct {
	*engine.Session
	boards chan *engine.Board // the latest board
}

func (s *stage) follow(t *testing.T) *followed {
	t.Helper()
	x := standing{Bench: s.Bench, link: proofLink, box: s.box, access: s.access, answers: s.answers}
	f := &followed{x.session(t, cluster.Options{}), make(chan *engine.Board, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Follow(ctx, f.Guide().Cells(), func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
			now := engine.NewBoard(f.Guide())
			for _, c := range f.Guide().Cells() {
				now.Put(c, b.Verdict(c))
			}
			select {
			case <-f.boards:
			default:
			}
			f.boards <- now
			return true
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		f.Close()
	})
	return f
}

// until waits for a board for which the callback (wrong) returns no problems.
func (f *followed) until(t *testing.T, within time.Duration, wrong func(*engine.Board) []string) {
	t.Helper()
	due := time.After(within)
	var last []string
	for {
		select {
		case b := <-f.boards:
			if last = wrong(b); len(last) == 0 {
				return
			}
		case <-due:
			t.Fatalf("after %s:\n%s", within, strings.Join(last, "\n"))
		}
	}
}

func (f *followed) notGreen(b *engine.Board) []string {
	var out []string
	for _, c := range f.Guide().Cells() {
		if v := b.Verdict(c); !v.Status.Holds() && v.Status != steps.Skip {
			out = append(out, fmt.Sprintf("%s on the %s: %s: %s", c.Check, c.Side, v.Status, v.Found))
		}
	}
	return out
}

// faultsOfLive continuously probes a green setup, injects a fault on the side of the check Breaks, and breaks that
// check. The board must not stay green. When the fault is over, the board must show the failure. Once the check is
// fixed, the board must be green again.
func (s *stage) faultsOfLive(t *testing.T) {
	f := s.follow(t)
	side := ground(s.Guide)
	admin := s.box.Open(t, string(side), cluster.Options{})
	f.until(t, recovers, f.notGreen)
	_, step := s.Guide.Check(s.Breaks)
	broken := steps.Cell{Step: step.Name, Check: s.Breaks, Side: side}
	for _, x := range troubles() {
		cases.Run(t, "fault", x.fault.Name, func(t *testing.T) { s.lived(t, f, x, admin, broken) })
	}
}

func (s *stage) lived(t *testing.T, f *followed, x trouble, admin *cluster.Cluster, broken steps.Cell) {
	t.Cleanup(s.calm) // even if the test fails
	fails := func(b *engine.Board) []string {
		if v := b.Verdict(broken); v.Status != steps.Fail {
			return []string{fmt.Sprintf("%s: %s: %s", broken.Check, v.Status, v.Found)}
		}
		return nil
	}
	if !x.stops {
		s.Break(t, admin)
		f.until(t, noticedWithin, fails)
		s.FixedBy(t, admin)
		f.until(t, recovers, f.notGreen)
	}
	began := time.Now()
	s.brings(t, x, broken.Side)
	if x.harmless {
		s.Break(t, admin)
		f.until(t, noticedWithin, fails)
	} else {
		if !x.stops {
			s.Break(t, admin)
		}
		f.until(t, noticedWithin, func(b *engine.Board) []string { return s.held(b, x) })
	}
	noticed := time.Since(began)
	s.ends(t, x, broken.Side)
	began = time.Now()
	if !x.stops {
		f.until(t, recovers, fails)
		s.FixedBy(t, admin)
	}
	f.until(t, recovers, f.notGreen)
	t.Logf(
		"noticed after %s, green again after %s", noticed.Round(time.Millisecond), time.Since(began).Round(time.Millisecond),
	)
}

// held returns the cells of the faulty side that pass but should not.
func (s *stage) held(b *engine.Board, x trouble) []string {
	var out []string
	for _, c := range s.Guide.Cells() {
		if v := b.Verdict(c); c.Side == ground(s.Guide) && v.Status.Holds() && !slices.Contains(s.Blind[c.Side], c.Check) &&
			!slices.Contains(x.holds, c.Check) {
			out = append(out, fmt.Sprintf("%s passes: %s: %s", c.Check, v.Status, v.Found))
		}
	}
	return out
}
