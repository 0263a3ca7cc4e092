package cluster

import (
	"sync"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/tracked"
)

// breaker tracks whether a cluster answers. While the cluster does not answer, only one read at a time tries to reach
// it. After Options.StaleAfter every read becomes stale immediately, and the first good answer wakes all reads. Code
// that holds its mutex acquires no other lock than that of its version.
type breaker struct {
	c       *Cluster
	version tracked.Version // bumped when a loss is reported and when it ends

	mu       sync.Mutex
	answered bool      // the cluster has answered at least once
	healed   time.Time // when the last loss ended
	streams  int       // open watches
	lost     time.Time // zero: the cluster answers
	cause    error
	open     *failure.StaleError // set once the loss is reported
	timer    *time.Timer
	turns    turns
}

// lose records that the cluster has not answered since the given moment, and reports whether the cluster is lost. While
// a watch is open the cluster is not lost: then only the caller's request failed.
func (b *breaker) lose(since time.Time, cause error) bool {
	b.mu.Lock()
	if b.streams > 0 {
		b.mu.Unlock()
		return false
	}
	if b.lost.IsZero() {
		b.lost = since
		b.turns.epoch++
	}
	b.cause = cause
	rest := b.c.staleAfter(b.answered) - time.Since(b.lost)
	if hopeless(cause) && !b.answered {
		rest = 0
	}
	switch {
	case b.open != nil:
	case rest <= 0:
		said := b.trip()
		b.mu.Unlock()
		b.c.staleAll(said)
		return true
	case b.timer == nil:
		b.timer = time.AfterFunc(rest, b.late)
	}
	b.mu.Unlock()
	return true
}

func (b *breaker) late() {
	b.mu.Lock()
	b.timer = nil
	if b.lost.IsZero() || b.open != nil || b.streams > 0 {
		b.mu.Unlock()
		return
	}
	said := b.trip()
	b.mu.Unlock()
	b.c.staleAll(said)
}

func (b *breaker) trip() *failure.StaleError {
	b.open = &failure.StaleError{Since: b.lost, Cause: b.cause, Never: !b.answered}
	b.stopTimer()
	b.version.Bump()
	return b.open
}

func (b *breaker) stopTimer() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// heal records a good answer. It must be called before the answer is published, or a read could stay stale.
func (b *breaker) heal() {
	b.mu.Lock()
	b.answered = true
	if b.lost.IsZero() {
		b.mu.Unlock()
		return
	}
	b.reset()
	b.healed = time.Now()
	b.version.Bump()
	b.mu.Unlock()
	b.c.nudgeAll()
}

// forget drops a loss when no read is left that would notice its end.
func (b *breaker) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.lost.IsZero() {
		b.reset()
		b.version.Bump()
	}
}

// reset clears the loss and lets every queued read try. The caller holds the mutex.
func (b *breaker) reset() {
	b.lost, b.cause, b.open = time.Time{}, nil, nil
	b.stopTimer()
	b.turns.taken = false
	for _, turn := range b.turns.queued {
		close(turn)
	}
	b.turns.queued = nil
}

// said returns the loss if it has been reported, else nil.
func (b *breaker) said() *failure.StaleError {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// unsettled reports whether the cluster is lost or was until a moment ago: an API server that is starting refuses
// requests that it will allow later.
func (b *breaker) unsettled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.answered {
		return false
	}
	return !b.lost.IsZero() || time.Since(b.healed) < b.c.options.StaleAfter
}

func (b *breaker) everAnswered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answered
}

// stale returns the StaleError of one read.
func (c *Cluster) stale(since time.Time, cause error) *failure.StaleError {
	return &failure.StaleError{Since: since, Cause: cause, Never: !c.outages.everAnswered()}
}

func (b *breaker) isLost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.lost.IsZero()
}

// lives adds n to the number of open watches.
func (b *breaker) lives(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams += n
}

func (b *breaker) living() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.streams
}

func (b *breaker) Changes() *tracked.Version { return &b.version }

func (b *breaker) Heard() (at time.Time, polled bool) { return b.c.wire.lastHeard(), false }

// staleAfter returns how long the cluster may fail to answer before the loss is reported. If an exec plugin has not run
// yet, that is at least the timeout of one request.
func (c *Cluster) staleAfter(answered bool) time.Duration {
	if !answered && c.config.ExecProvider != nil {
		return max(c.options.StaleAfter, c.timeout)
	}
	return c.options.StaleAfter
}
