package tracked

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"carrick/cluster/failure"
)

const (
	ErrorAge  = 5 * time.Second // maximum age of an error
	looksKept = 1024            // number of results above which expired results are dropped
)

// Looks caches results that cannot be watched. Each result has a maximum age. Looks is safe for concurrent use, and
// outlives the checks that use it.
type Looks struct {
	mu   sync.Mutex
	kept map[lookKey]*look
}

// lookKey identifies a look by its owner (a *Cluster, or nil), the type of its result, and the caller's key.
type lookKey struct {
	owner any
	kind  any
	key   string
}

// look is one result, which is available or in progress.
type look struct {
	version  Version // bumped when the result is dropped by Forget
	stop     context.CancelFunc
	done     chan struct{} // closed when the fields below are set
	value    any
	err      error
	at       time.Time
	age      time.Duration
	expires  time.Time
	trace    *Trace // the reads on which the result depends
	watchers int    // number of callers that wait for done; guarded by Looks.mu
}

// Owner is an owner of looks that can have an outage, such as a cluster that does not answer. Standing returns the
// cause of the outage, or nil if there is none. It also makes the caller run again when an outage begins or ends.
type Owner interface {
	Standing(ctx context.Context) error
}

func (l *look) Changes() *Version        { return &l.version }
func (l *look) Heard() (time.Time, bool) { return l.at, false }

type looksKey struct{}

// NewLooks returns an empty store.
func NewLooks() *Looks { return &Looks{kept: map[lookKey]*look{}} }

// WithLooks returns a context in which Look caches its results in l.
func WithLooks(ctx context.Context, l *Looks) context.Context {
	return context.WithValue(ctx, looksKey{}, l)
}

// Look calls look, which reads a source that cannot be watched, and returns the result. If ctx has a Looks, the result
// is cached for age. The cache distinguishes results by key and type. An error is cached for at most 5 s. Concurrent
// callers share one call, which is canceled when no caller waits for it. The trace of ctx expires with the result.
// Without a Looks in ctx, nothing is cached. If look panics, Look returns the panic as an error.
func Look[T any](ctx context.Context, key string, age time.Duration, look func(context.Context) (T, error)) (T, error) {
	return LookOf(ctx, nil, key, age, look)
}

// LookOf is like Look, with a separate cache for each owner. If owner is an Owner with an outage, LookOf returns the
// cause of the outage.
func LookOf[T any](
	ctx context.Context, owner any, key string, age time.Duration, run func(context.Context) (T, error),
) (T, error) {
	return LookAged(ctx, owner, key, Ages{First: age, Steady: age}, run)
}

// Ages sets how long results are valid. The first result is valid for First. As long as nothing that was read changes,
// each new result is valid for twice as long as the previous one, up to Steady.
type Ages struct{ First, Steady time.Duration }

func (a Ages) after(l *look) time.Duration {
	if l == nil || !l.finished() || l.err != nil || time.Since(l.expires) > a.Steady || l.trace.Differs() {
		return a.First
	}
	return min(2*l.age, a.Steady)
}

// LookAged is like LookOf, but the age of results grows from kept.First to kept.Steady (see Ages).
func LookAged[T any](
	ctx context.Context, owner any, key string, kept Ages, run func(context.Context) (T, error),
) (T, error) {
	var zero T
	if c, ok := owner.(Owner); ok {
		if err := c.Standing(ctx); err != nil { // during an outage, cached results are not used
			return zero, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return zero, err
	}
	store, _ := ctx.Value(looksKey{}).(*Looks)
	if store == nil {
		value, err := guarded(ctx, key, run)
		if err == nil {
			Expires(ctx, time.Now().Add(kept.First))
		} else {
			Expires(ctx, time.Now().Add(min(kept.First, ErrorAge)))
		}
		return value, err
	}
	k := lookKey{owner: owner, kind: (*T)(nil), key: key}
	l := store.join(ctx, k, kept, func(ctx context.Context) (any, error) { return guarded(ctx, key, run) })
	defer store.leave(k, l)
	select {
	case <-l.done:
	case <-ctx.Done():
		Expires(ctx, time.Now().Add(min(kept.First, ErrorAge))) // nothing was recorded that could wake the trace
		return zero, context.Cause(ctx)
	}
	Note(ctx, l, 0)
	AbsorbInto(ctx, l.trace)
	Expires(ctx, l.expires)
	value, _ := l.value.(T)
	return value, l.err
}

// join returns the look for a key if the look is valid or still running. Otherwise it starts a new one.
func (s *Looks) join(ctx context.Context, k lookKey, kept Ages, run func(context.Context) (any, error)) *look {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.kept[k]
	if was != nil && was.holds(time.Now()) {
		was.watchers++
		return was
	}
	age := kept.after(was)
	s.prune()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ctx, trace := WithTrace(ctx)
	l := &look{stop: stop, done: make(chan struct{}), age: age, trace: trace, watchers: 1}
	s.kept[k] = l
	go func() {
		defer stop()
		l.value, l.err = run(ctx)
		l.at = time.Now()
		if l.err != nil {
			age = min(age, ErrorAge)
		}
		l.expires = l.at.Add(age)
		close(l.done)
	}()
	return l
}

// leave removes a caller that waits for a look. It cancels the look if no other caller waits.
func (s *Looks) leave(k lookKey, l *look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.watchers--; l.watchers > 0 || l.finished() {
		return
	}
	l.stop()
	if s.kept[k] == l {
		delete(s.kept, k)
	}
}

// Forget drops every result whose key starts with prefix, and wakes the callers that wait on a trace with such a
// result.
func (s *Looks) Forget(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, l := range s.kept {
		if strings.HasPrefix(k.key, prefix) {
			delete(s.kept, k)
			l.version.Bump()
		}
	}
}

// Forget calls the Forget method of the Looks in ctx, if there is one.
func Forget(ctx context.Context, prefix string) {
	if looks, ok := ctx.Value(looksKey{}).(*Looks); ok {
		looks.Forget(prefix)
	}
}

func (s *Looks) prune() {
	if len(s.kept) < looksKept {
		return
	}
	for k, l := range s.kept {
		if !l.holds(time.Now()) {
			delete(s.kept, k)
		}
	}
}

func (l *look) finished() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// holds reports whether the look is still running or its result is valid.
func (l *look) holds(now time.Time) bool {
	return !l.finished() || (now.Before(l.expires) && !l.trace.Differs())
}

func guarded[T any](ctx context.Context, what string, run func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v", what, failure.ErrPanicked, p)
		}
	}()
	return run(ctx)
}
