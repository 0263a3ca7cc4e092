package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/failure"
	"carrick/cluster/tracked"
)

// readKey identifies the tracked read of one object. If the name is "", it identifies the read of a list.
type readKey struct {
	gvr             schema.GroupVersionResource
	namespace, name string
	selector        Selector
}

func (k readKey) String() string {
	return strings.Join(
		[]string{k.gvr.GroupResource().String(), k.namespace, k.name, k.selector.Labels, k.selector.Fields}, " ",
	)
}

// read stores the API server's last answer to one tracked read. One goroutine (run) keeps the answer current while the
// read is used.
type read struct {
	c       *Cluster
	key     readKey
	version tracked.Version
	life    context.Context
	stop    context.CancelFunc
	nudge   chan struct{} // ends a pause early
	started time.Time

	users int         // callers of await; guarded by Cluster.mu
	idle  *time.Timer // stops the read; guarded by Cluster.mu

	single sync.Mutex // held by runOnce

	mu        sync.Mutex
	turned    chan struct{} // closed and replaced whenever the fields below change
	content                 // the result for callers
	wanted    map[string]bool
	begun     bool      // this attempt has received an object
	attempt   func()    // ends this attempt, so that the next one reads additional keys
	lost      time.Time // start of the read's outage; zero: none
	cause     error
	lossTimer *time.Timer // reports the outage when it fires
	live      bool        // a watch is open
	good      time.Time   // time of the last good answer
	via       *read       // the read that is watched instead: the CRD of a kind that is not served

	// Only the goroutine of run uses the fields below.
	stood     bool      // this attempt's watch was established
	fails     int       // consecutive attempts without an answer
	refusals  int       // consecutive refusals
	refusedAt time.Time // time of the first of these refusals
	watchAt   time.Time // while polling: when to try a watch again
}

// acquire returns the read for key and starts it if necessary. The caller must call release.
func (c *Cluster) acquire(key readKey, keys ...string) (*read, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, failure.ErrClosed
	}
	r := c.reads[key]
	if r == nil {
		r = &read{
			c: c, key: key,
			nudge:   make(chan struct{}, 1),
			turned:  make(chan struct{}),
			wanted:  map[string]bool{},
			started: time.Now(),
		}
		r.life, r.stop = context.WithCancel(c.life)
		c.reads[key] = r
		r.want(keys)
		r.lose(r.started, failure.ErrNoAnswer)
		c.work.Go(r.guardedRun)
	} else {
		r.want(keys)
	}
	r.users++
	if r.idle != nil {
		r.idle.Stop()
	}
	return r, nil
}

// release undoes one acquire. An unused read is kept current for Options.Linger.
func (c *Cluster) release(r *read) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.users--
	if r.users == 0 && !c.closed && !c.options.Once {
		r.idle = time.AfterFunc(c.options.Linger, func() { c.sweep(r) })
	}
}

// sweep stops a read that has no users and no waiters. It also wakes the callers that wait on a trace with this read,
// because the result is no longer kept current.
func (c *Cluster) sweep(r *read) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.reads[r.key] != r || r.users > 0 {
		return
	}
	if rest := c.options.Linger - r.version.Unwaited(); rest > 0 {
		r.idle = time.AfterFunc(rest, func() { c.sweep(r) })
		return
	}
	delete(c.reads, r.key)
	r.stop()
	r.version.Bump()
	if len(c.reads) == 0 {
		c.outages.forget()
	}
}

// await waits until the read has a result and returns it. The trace of ctx records the read.
func (r *read) await(ctx context.Context, keys ...string) (view, error) {
	for {
		r.mu.Lock()
		told, gen, turned := r.has(keys), r.version.Now(), r.turned
		var seen view
		if told {
			seen = r.view(r.key)
			seen.gen = gen
		}
		r.mu.Unlock()
		if told {
			tracked.Note(ctx, r, gen)
			return seen, seen.err
		}
		select {
		case <-turned:
		case <-ctx.Done():
			tracked.Note(ctx, r, gen)
			return view{}, context.Cause(ctx)
		case <-r.life.Done():
			return view{}, failure.ErrClosed
		}
	}
}

// has reports whether there is a result for a caller that requests the given keys.
func (r *read) has(keys []string) bool {
	if r.stale != nil {
		return true
	}
	return r.answered && (r.err != nil || r.keeps(keys))
}

func (r *read) Changes() *tracked.Version { return &r.version }

func (r *read) Heard() (at time.Time, polled bool) {
	r.mu.Lock()
	live, good, polled, via := r.live, r.good, r.polled, r.via
	r.mu.Unlock()
	if via != nil {
		at, byPolling := via.Heard()
		return later(at, good), polled || byPolling
	}
	if live {
		return later(good, r.c.wire.lastHeard()), polled
	}
	return good, polled
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nudgeAll ends every pause of the cluster's reads.
func (c *Cluster) nudgeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reads {
		select {
		case r.nudge <- struct{}{}:
		default:
		}
	}
}

// staleAll makes every read stale, unless the outage has ended in the meantime.
func (c *Cluster) staleAll(said *failure.StaleError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reads {
		r.mu.Lock()
		if c.outages.said() == said {
			r.makeStale(said)
		}
		r.mu.Unlock()
	}
}

// Retry makes all waiting reads of c, and of the clusters that As created, retry immediately. This includes refused
// reads, because a change might have granted the permission.
func (c *Cluster) Retry() {
	c.mu.Lock()
	others := slices.Collect(maps.Values(c.seenAs))
	c.mu.Unlock()
	c.nudgeAll()
	for _, other := range others {
		other.Retry()
	}
}
