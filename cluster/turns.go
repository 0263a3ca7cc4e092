package cluster

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	firstPause = 20 * time.Millisecond // minimum pause between two attempts during an outage
	pauseShare = 20                    // a pause is the duration of the outage so far, divided by pauseShare
	longTry    = time.Second           // time after which an attempt no longer blocks other attempts
)

// turns is the queue of reads that wait to retry during an outage. Only one read retries at a time.
type turns struct {
	epoch  int  // number of the current outage
	taken  bool // a read is retrying, or will retry after a pause
	queued []chan struct{}
}

// turn blocks until the caller is allowed to send a request to the cluster. If there is no outage, turn returns
// immediately. The caller must call done after the attempt.
func (b *breaker) turn(ctx context.Context) (done func(), err error) {
	b.mu.Lock()
	if b.lost.IsZero() {
		b.mu.Unlock()
		return func() {}, nil
	}
	epoch := b.turns.epoch
	if !b.turns.taken {
		b.turns.taken = true
		b.mu.Unlock()
		return b.trying(epoch), nil
	}
	mine := make(chan struct{})
	b.turns.queued = append(b.turns.queued, mine)
	b.mu.Unlock()
	select {
	case <-mine:
		return b.trying(epoch), nil
	case <-ctx.Done():
		b.giveUp(epoch, mine)
		return nil, context.Cause(ctx)
	}
}

// trying returns the function that the caller must call after its attempt. After the attempt and a pause, the next read
// in the queue can try. The pause grows with the duration of the outage. If the attempt takes longer than longTry, the
// next read can try immediately.
func (b *breaker) trying(epoch int) (done func()) {
	var once sync.Once
	pass := func() { once.Do(func() { b.pass(epoch) }) }
	long := time.AfterFunc(longTry, pass)
	return func() {
		long.Stop()
		b.mu.Lock()
		lost := b.lost
		over := b.turns.epoch != epoch || lost.IsZero()
		b.mu.Unlock()
		if !over {
			time.AfterFunc(min(max(time.Since(lost)/pauseShare, firstPause), b.c.options.BackoffMax), pass)
		}
	}
}

// pass allows the next read in the queue to try.
func (b *breaker) pass(epoch int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turns.epoch != epoch || b.lost.IsZero() {
		return
	}
	if len(b.turns.queued) == 0 {
		b.turns.taken = false
		return
	}
	close(b.turns.queued[0])
	b.turns.queued = b.turns.queued[1:]
}

// giveUp removes the caller from the queue. If the caller has already left the queue because it was allowed to try,
// giveUp allows the next read to try instead.
func (b *breaker) giveUp(epoch int, mine chan struct{}) {
	b.mu.Lock()
	i := slices.Index(b.turns.queued, mine)
	if i >= 0 {
		b.turns.queued = slices.Delete(b.turns.queued, i, i+1)
	}
	b.mu.Unlock()
	if i < 0 {
		b.pass(epoch)
	}
}
