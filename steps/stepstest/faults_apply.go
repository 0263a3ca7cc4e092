package stepstest

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carrick/cluster/clustertest/cases"
	"carrick/cluster/clustertest/proxy"
)

// faultsOfApply runs an apply during each fault. Each run continues where the previous run ended. The last run
// completes.
func (s *stage) faultsOfApply(t *testing.T) {
	for i, x := range troubles() {
		if x.harmless {
			continue
		}
		if !x.stops {
			cases.Run(t, "fault", x.fault.Name+"/changes", func(t *testing.T) { s.changesFail(t, x, i%2) })
		}
		cases.Run(t, "fault", x.fault.Name+"/looks", func(t *testing.T) { s.looksFail(t, x) })
	}
	cases.Run(t, "fault", "latency, and watches that are cut or return 410", func(t *testing.T) {
		s.fresh(t)
		for i, side := range clusters(s.Guide) {
			s.way[side].Set(
				proxy.Rule{
					Verbs: []string{"watch"}, Fault: []proxy.Fault{proxy.CutWatch(time.Second), proxy.Expired()}[i], Times: 200,
				},
				proxy.Rule{Fault: proxy.Latency(30 * time.Millisecond)},
			)
		}
		defer s.calm()
		s.finish(t, "apply")
	})
	s.holds(t)
}

func (s *stage) calm() {
	for _, way := range s.way {
		way.Set()
	}
}

// fresh makes sure that something is left to apply.
func (s *stage) fresh(t *testing.T) {
	t.Helper()
	r := s.start(t, "diff")
	switch code := r.code(t, lookWithin); code {
	case 3:
	case 0:
		s.finish(t, "undo")
	default:
		t.Fatalf("diff: exit code %d\n%s", code, r.said())
	}
}

// changesFail makes all changes fail except the first few on each side.
func (s *stage) changesFail(t *testing.T, x trouble, pass int) {
	s.fresh(t)
	for _, side := range clusters(s.Guide) {
		s.way[side].Set(x.rules(proxy.Rule{Changes: true, After: pass})...)
	}
	defer s.calm()
	r := s.start(t, "apply", "--yes")
	code := r.code(t, applyWithin)
	s.sane(t, r)
	if code != 1 && code != 6 {
		t.Errorf("exit code %d\n%s", code, r.said())
	}
	plainEnd(t, r)
}

// looksFail makes all reads of a run on both sides fail for a while, once the run has changed something. The run must
// either stop with a reason or continue. If it continues, it is interrupted at its next change.
func (s *stage) looksFail(t *testing.T, x trouble) {
	s.fresh(t)
	var changed, over, more atomic.Bool
	first, on, next := make(chan struct{}), make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(on) })
	defer begin()
	s.intercept(nil, func(proxy.Request) bool {
		switch {
		case changed.CompareAndSwap(false, true):
			close(first)
			<-on // answer only after the fault has begun
		case over.Load() && more.CompareAndSwap(false, true):
			close(next)
		}
		return true
	})
	defer s.intercept(nil, nil)
	defer s.calm()
	r := s.start(t, "apply", "--yes")
	select {
	case <-first:
	case <-r.ended:
		t.Fatalf("apply changed nothing: %s", r.said())
	}
	for _, side := range clusters(s.Guide) {
		if x.stops {
			s.box.Stop(t, string(side))
		} else {
			s.way[side].Set(x.rules(proxy.Rule{Looks: true})...)
		}
	}
	begin()
	select {
	case <-time.After(briefly):
	case <-r.ended:
	}
	over.Store(true)
	for _, side := range clusters(s.Guide) {
		s.ends(t, x, side)
	}
	select {
	case <-next:
		_ = r.cmd.Process.Signal(os.Interrupt)
	case <-r.ended:
	case <-time.After(applyWithin):
	}
	code := r.code(t, applyWithin)
	s.sane(t, r)
	switch code {
	case 0:
	case 1, 6, 130: // 1: the response to the first change was lost
		plainEnd(t, r)
	default:
		t.Errorf("exit code %d\n%s", code, r.said())
	}
}

// plainEnd fails the test unless a run that stopped reports why, and what to do.
func plainEnd(t *testing.T, r *run) {
	t.Helper()
	said := r.err.String()
	i := strings.LastIndex("\n"+said, "\ncarrick: ")
	if i < 0 {
		t.Errorf("apply does not report why it stopped:\n%s", said)
		return
	}
	for _, raw := range []string{
		"context deadline exceeded", "context canceled", "unexpected EOF", "stream error", "invalid character", "http2:",
		"%!",
	} {
		if strings.Contains(said[i:], raw) {
			t.Errorf("apply stops with %q:\n%s", raw, said[i:])
		}
	}
}
