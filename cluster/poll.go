package cluster

import (
	"context"
	"errors"
	"time"

	"carrick/cluster/failure"
)

// poll sends one request and returns the pause before the next one.
func (r *read) poll(ctx context.Context, start time.Time) time.Duration {
	records, err := r.fetch(ctx)
	if err != nil {
		r.c.options.Log.Debug("a poll failed", "server", r.c.Server(), "read", r.key.String(), "err", err)
	}
	if err != nil && answerOf(err) == absent {
		records, err = map[string]record{}, nil
	}
	if errors.Is(err, errMoreKeys) {
		return 0
	}
	if err != nil {
		return r.settleFor(start, err)
	}
	r.publish(records, true)
	r.fails, r.refusedAt = 0, time.Time{}
	return min(r.c.options.Poll, max(time.Until(r.watchAt), time.Millisecond))
}

// settleFor records an error either as the API server's answer or as an outage. It returns the pause before the next
// attempt.
func (r *read) settleFor(start time.Time, err error) time.Duration {
	switch answerOf(err) {
	case unreachable:
		since := r.lossOf(start, err)
		r.lose(since, err)
		if r.c.outages.lose(since, err) {
			return 0
		}
	case unserved:
		r.fails, r.refusedAt = 0, time.Time{}
		return r.untilServed(err)
	case refused, unauthorized:
		if r.grace() {
			r.endUnreportedLoss()
			r.fails++
			return r.backoff(min(r.fails-1, 2), nil)
		}
		if r.watchAt.Before(time.Now()) {
			r.watchAt = time.Now().Add(r.retry())
		}
		r.refuse(err, false)
		return time.Until(r.watchAt)
	case rejected, unwatchable, absent:
		r.refuse(err, false)
		return lastRetry
	default:
		r.lose(time.Now(), err)
	}
	r.fails++
	return r.backoff(r.fails-1, err)
}

// lossOf returns when an outage began. If the attempt timed out, it returns start. If the connection became silent, it
// returns the time of the last received byte. Otherwise it returns the current time.
func (r *read) lossOf(start time.Time, err error) time.Time {
	if errors.Is(err, failure.ErrNoAnswer) || errors.Is(err, failure.ErrTimeout) {
		return start
	}
	if heard := r.c.wire.lastHeard(); failure.WentSilent(err) && time.Since(heard) > r.c.options.Ping {
		return heard
	}
	return time.Now()
}

func (r *read) polls() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.polled
}

// grace reports whether a 401 or 403 response is too recent to be final. An API server that is starting briefly refuses
// requests that it allows later. If the read was never allowed and the cluster had no recent outage, the response is
// final immediately.
func (r *read) grace() bool {
	r.mu.Lock()
	allowed := r.answered && r.err == nil
	r.mu.Unlock()
	if !allowed && !r.c.outages.unsettled() {
		return false
	}
	if r.refusedAt.IsZero() {
		r.refusedAt = time.Now()
	}
	return time.Since(r.refusedAt) < r.c.options.StaleAfter
}
