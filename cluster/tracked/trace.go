package tracked

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Trace records the reads of a context: the sources, the version of each source, and when the trace expires even
// without a change. It is safe for concurrent use.
type Trace struct {
	mu      sync.Mutex
	notes   map[source]uint64 // the oldest version that was read, by source
	Expires time.Time         // zero: never
}

type traceKey struct{}

// WithTrace returns a context with a new trace, and the trace.
func WithTrace(ctx context.Context) (context.Context, *Trace) {
	t := &Trace{notes: map[source]uint64{}}
	return context.WithValue(ctx, traceKey{}, t), t
}

// TraceOf returns the trace of ctx, or nil.
func TraceOf(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}

// Note records in the trace of ctx that s was read at version gen.
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

// Expires makes the trace of ctx expire at the given time, even if nothing that was read has changed. The earliest time
// counts. The zero time has no effect.
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

// AbsorbInto adds the records of another trace to the trace of ctx. A caller that gets a cached result then depends on
// the reads behind that result. A nil trace adds nothing.
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

// Wait returns nil when something that was read has changed, or when the trace expires. It also notices changes between
// the read and the call of Wait. If ctx ends first, it returns the cause of ctx.
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

// Differs reports whether Wait would return immediately.
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

// Seen returns how current the reads are: the last time at which all of them were known to be valid, and whether some
// of them are polled. The zero time means that nothing was read, or that a source has never answered.
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

// watchable is a source that is watched if possible, and otherwise polled. Unwatched returns why it cannot be watched,
// or nil.
type watchable interface {
	Unwatched() error
}

// Unwatched returns why a source is polled although sources of its kind can usually be watched. It returns nil if there
// is no such source.
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

// Reads returns the number of distinct sources that were read.
func (t *Trace) Reads() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.notes)
}
