package cluster

import (
	"sync"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/tracked"
)

// breaker detects outages of a cluster. During an outage, only one read at a time sends requests. After
// Options.StaleAfter, all reads become stale at once. The first answer wakes all waiting reads. Code that holds mu must
// not acquire any lock other than the one in version.
type breaker struct {
	c       *Cluster
	version tracked.Version // bumped when an outage is reported and when it ends

	mu       sync.Mutex
	answered bool      // the cluster has answered at least once
	healed   time.Time // end of the last outage
	streams  int       // open watches
	lost     time.Time // start of the current outage; zero: none
	cause    error
	open     *failure.StaleError // the reported outage; nil: none
	timer    *time.Timer
	turns    turns
}

// lose records that the cluster has not answered since the given time. If a watch is open, the cluster still answers
// and only the caller's request failed. In this case lose records nothing and returns false.
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
	if isPermanent(cause) && !b.answered {
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

// heal records that the cluster answered, and ends the outage. It must be called before the answer is published.
// Otherwise a read could stay stale.
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

// forget ends an outage when the cluster has no more reads. Without reads, no request would detect that the cluster
// answers again.
func (b *breaker) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.lost.IsZero() {
		b.reset()
		b.version.Bump()
	}
}

// reset ends the outage and allows all queued reads to retry. The caller must hold b.mu.
func (b *breaker) reset() {
	b.lost, b.cause, b.open = time.Time{}, nil, nil
	b.stopTimer()
	b.turns.taken = false
	for _, turn := range b.turns.queued {
		close(turn)
	}
	b.turns.queued = nil
}

// said returns the reported outage, or nil if none is reported.
func (b *breaker) said() *failure.StaleError {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// unsettled reports whether the cluster has an outage or has recovered only recently. During this time a 401 or 403
// response is not final, because an API server that is starting refuses requests that it allows later.
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

// staleAfter returns the time without an answer after which an outage is reported. If the cluster has never answered
// and uses an exec plugin, this is at least the timeout of one request.
func (c *Cluster) staleAfter(answered bool) time.Duration {
	if !answered && c.config.ExecProvider != nil {
		return max(c.options.StaleAfter, c.timeout)
	}
	return c.options.StaleAfter
}
