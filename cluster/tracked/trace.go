package tracked

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Trace records what was read under a context: which reads, in which version,
// and when to look again although nothing may have changed. It is safe for
// concurrent use.
type Trace struct {
	mu      sync.Mutex
	notes   map[source]uint64 // the oldest version seen of each
	Expires time.Time         // zero: never
}

type traceKey struct{}

// WithTrace returns a context that records what is read under it.
func WithTrace(ctx context.Context) (context.Context, *Trace) {
	t := &Trace{notes: map[source]uint64{}}
	return context.WithValue(ctx, traceKey{}, t), t
}

// TraceOf returns the trace of ctx, or nil.
func TraceOf(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}

// Note records in the trace of ctx that s was read in version gen.
func Note(ctx context.Context, s source, gen uint64) {
	if t := TraceOf(ctx); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.add(s, gen)
	}
}

func (t *Trace) add(s source, gen uint64) {
	if old, ok := t.notes[s]; !ok || gen < old {
		t.notes[s] = gen
	}
}

// Expires asks for another look at the given moment, although nothing that was
// read may have changed. The earliest moment counts; the zero time asks for
// nothing.
func Expires(ctx context.Context, at time.Time) {
	if t := TraceOf(ctx); t != nil {
		t.expire(at)
	}
}

func (t *Trace) expire(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !at.IsZero() && (t.Expires.IsZero() || at.Before(t.Expires)) {
		t.Expires = at
	}
}

// AbsorbInto adds what another trace recorded to the trace of ctx: the reads of
// a memoised fact count for who used it. A nil trace adds nothing.
func AbsorbInto(ctx context.Context, other *Trace) {
	t := TraceOf(ctx)
	if t == nil || other == nil || t == other {
		return
	}
	notes, expires := other.snapshot()
	t.expire(expires)
	t.mu.Lock()
	defer t.mu.Unlock()
	for s, gen := range notes {
		t.add(s, gen)
	}
}

func (t *Trace) snapshot() (map[source]uint64, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.notes), t.Expires
}

// Wait returns nil once something that was read differs from what was read, or
// a moment given to Expires has come. A change between the read and Wait is not
// lost. It returns the cause of ctx when that ends first.
func (t *Trace) Wait(ctx context.Context) error {
	notes, expires := t.snapshot()
	wake := make(chan struct{}, 1)
	for s, gen := range notes {
		s.Changes().Subscribe(wake, gen)
		defer s.Changes().Unsubscribe(wake)
	}
	var due <-chan time.Time
	if !expires.IsZero() {
		timer := time.NewTimer(time.Until(expires))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-wake:
		return nil
	case <-due:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Differs reports whether Wait would return at once.
func (t *Trace) Differs() bool {
	notes, expires := t.snapshot()
	if !expires.IsZero() && !time.Now().Before(expires) {
		return true
	}
	for s, gen := range notes {
		if gen < s.Changes().Now() {
			return true
		}
	}
	return false
}

// Seen tells how old what was read is: the moment at which the oldest of it was
// last known to hold, and whether some of it is learnt by polling. The zero
// time means that nothing was read, or that nothing ever answered.
func (t *Trace) Seen() (at time.Time, polled bool) {
	notes, _ := t.snapshot()
	first := true
	for s := range notes {
		heard, byPolling := s.Heard()
		polled = polled || byPolling
		if first || heard.Before(at) {
			at, first = heard, false
		}
	}
	return at, polled
}

// watchable is a source that is polled where it can't be watched; unwatched returns why it can't.
type watchable interface {
	Unwatched() error
}

// Unwatched returns why some of what was read is polled although it could be watched; nil: nothing is.
func (t *Trace) Unwatched() error {
	notes, _ := t.snapshot()
	for s := range notes {
		if f, ok := s.(watchable); ok {
			if err := f.Unwatched(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Reads returns the number of distinct things that were read.
func (t *Trace) Reads() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.notes)
}
