package cluster

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	firstPause = 20 * time.Millisecond // between two attempts to reach a lost cluster
	pauseShare = 20                    // a pause is at most this fraction of the outage so far
	longTry    = time.Second           // after this time an attempt stops blocking others
)

// turns is the queue of reads that wait to retry while the cluster is lost. One read tries at a time.
type turns struct {
	epoch  int  // number of the current loss
	taken  bool // a read is trying, or will try after a pause
	queued []chan struct{}
}

// turn returns when the caller may try to reach the cluster. While the cluster answers, that is immediately. The caller
// must call done after the attempt.
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

// trying returns the function to call after an attempt. The next read in the queue may try once the attempt has ended
// and a pause has passed, which grows with the outage. If the attempt takes long, the next read may try immediately.
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

// pass lets the next read in the queue try.
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

// giveUp removes the caller from the queue. If it was just the caller's turn, giveUp lets the next read try.
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
