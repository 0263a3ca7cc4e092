package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"carrick/cluster/failure"
)

const (
	firstRetry = 2 * time.Second // pause before a refused request is retried
	lastRetry  = time.Minute
	heldRetry  = 30 * time.Second // pause after a proxy delayed a watch
	recovery   = time.Second      // time within which all reads resume after an outage
)

func jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most)
}

// guardedRun runs the read. If the read panics, the panic becomes the error that the read returns.
func (r *read) guardedRun() {
	defer func() {
		if p := recover(); p != nil {
			r.c.options.Log.Error("read", "resource", r.key.gvr.Resource, "panic", p)
			r.refuse(fmt.Errorf("read %s: %w: %v", r.key.gvr.Resource, failure.ErrPanicked, p), false)
		}
	}()
	if r.c.options.Once {
		r.runOnce()
		return
	}
	r.run()
}

// run keeps the read current until the read is stopped. It makes one attempt after another. An attempt lasts as long as
// its watch.
func (r *read) run() {
	for r.life.Err() == nil {
		lost := r.c.outages.isLost()
		tried, err := r.c.outages.turn(r.life)
		if err != nil {
			return
		}
		if lost && !r.c.outages.isLost() {
			r.pause(jitter(r.c.spread()))
		}
		pause := r.try()
		tried()
		if r.pause(pause) {
			r.watchAt = time.Time{}
		}
	}
}

// spread returns the period within which the reads of the cluster resume after an outage. Each read resumes at a random
// time in this period.
func (c *Cluster) spread() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(time.Duration(len(c.reads))*2*time.Millisecond, recovery)
}

// pause waits for d. It reports whether a nudge ended the pause early.
func (r *read) pause(d time.Duration) (nudged bool) {
	if d <= 0 {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-r.nudge:
		return true
	case <-r.life.Done():
		return false
	}
}

// try makes one attempt and returns the pause before the next one.
func (r *read) try() time.Duration {
	ctx, cancel := context.WithCancelCause(r.life)
	defer cancel(nil)
	r.mu.Lock()
	r.begun = false
	r.attempt = func() { cancel(errMoreKeys) }
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.attempt = nil
		r.mu.Unlock()
	}()
	start := time.Now()
	if start.Before(r.watchAt) {
		return r.poll(ctx, start)
	}
	r.stood = false
	err := r.watch(ctx, cancel)
	r.c.options.Log.Debug(
		"a watch ended", "server", r.c.Server(), "read", r.key.String(), "after", time.Since(start), "err", err,
	)
	if r.stood && time.Since(start) > time.Second {
		r.fails = 0
	}
	if r.life.Err() != nil {
		return 0
	}
	if errors.Is(err, failure.ErrHeld) && !r.c.wire.lastHeard().After(start) {
		err = failure.ErrNoAnswer
	}
	return r.after(ctx, start, err)
}

// watch opens a watch, as a streaming list if the API server supports it. It returns the error that ended the watch.
func (r *read) watch(ctx context.Context, cancel context.CancelCauseFunc) error {
	silent := time.AfterFunc(r.c.firstWord(), func() { cancel(failure.ErrHeld) })
	defer silent.Stop()
	if r.c.listsFirst.Load() {
		return r.watchListed(ctx, silent)
	}
	err := r.watchStreaming(ctx, silent)
	if answerOf(err) == rejected {
		return r.watchListed(ctx, silent)
	}
	return err
}

// firstWord returns the timeout for the first event of a watch.
func (c *Cluster) firstWord() time.Duration {
	return max(c.options.Silence, c.staleAfter(c.outages.everAnswered()))
}

// after handles the error that ended a watch. It returns the pause before the next attempt.
func (r *read) after(ctx context.Context, start time.Time, err error) time.Duration {
	switch {
	case errors.Is(err, errMoreKeys):
		r.lose(time.Now(), err)
		return 0
	case errors.Is(err, failure.ErrHeld):
		r.lose(time.Now(), err)
		r.watchAt = time.Now().Add(heldRetry)
		return r.poll(r.life, time.Now()) // the attempt's own context has ended
	case errors.Is(err, failure.ErrEnded):
		return r.again(start, err)
	}
	switch answerOf(err) {
	case unwatchable:
		r.watchAt = time.Now().Add(lastRetry)
		return r.poll(ctx, time.Now())
	case expired: // this watch has no resource version that could expire, so the error has another cause
		if !r.stood && r.fails > 0 {
			r.lose(time.Now(), err)
			r.watchAt = time.Now().Add(heldRetry)
			return r.poll(ctx, time.Now())
		}
		return r.again(start, err)
	case refused:
		if r.polls() || !r.grace() {
			r.watchAt = time.Now().Add(r.retry())
			return r.poll(ctx, time.Now())
		}
	}
	return r.settleFor(start, err)
}

// again returns the pause after a watch that ended normally. The pause is zero if the watch was established and lasted
// longer than a second.
func (r *read) again(start time.Time, err error) time.Duration {
	r.lose(time.Now(), err)
	if r.stood && time.Since(start) > time.Second {
		return 0
	}
	r.fails++
	return r.backoff(r.fails-1, err)
}

// retry returns the pause before a refused request is retried: 2, 4 … 60 s.
func (r *read) retry() time.Duration {
	r.refusals++
	return min(firstRetry<<min(r.refusals-1, 8), lastRetry)
}
