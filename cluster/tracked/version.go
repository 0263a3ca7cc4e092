package tracked

import (
	"sync"
	"time"
)

// Announcements of changes are rate-limited, so that a burst of changes does not cause a burst of checks. For each
// version, the first atOnce announcements are immediate. After that, announcements are at least pace apart.
const (
	atOnce = 8
	pace   = 25 * time.Millisecond
)

// source is a source of data that can change after it was read.
type source interface {
	// Changes returns the version that counts the source's changes.
	Changes() *Version
	// Heard returns when the data was last known to be valid, and whether it is polled.
	Heard() (at time.Time, polled bool)
}

// Version counts the changes of one source and wakes waiters when the source changes. The zero value is ready to use.
// Announcements are rate-limited: one announcement can cover several changes.
type Version struct {
	mu        sync.Mutex
	n         uint64    // number of changes
	announced uint64    // number of changes that have been announced to waiters
	paid      time.Time // advances by pace with each announcement, to limit the rate
	timer     *time.Timer
	waiters   map[chan<- struct{}]uint64
	left      time.Time // when the last waiter left
}

// Now returns the number of changes.
func (v *Version) Now() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.n
}

// Bump counts one change.
func (v *Version) Bump() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.n++
	if v.timer != nil {
		return
	}
	if debt := time.Until(v.paid.Add(-(atOnce - 1) * pace)); debt > 0 {
		v.timer = time.AfterFunc(debt, v.late)
		return
	}
	v.announce()
}

func (v *Version) late() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.timer = nil
	v.announce()
}

func (v *Version) announce() {
	v.announced = v.n
	if now := time.Now(); v.paid.Before(now) {
		v.paid = now
	}
	v.paid = v.paid.Add(pace)

	for wake, gen := range v.waiters {
		if gen < v.announced {
			signal(wake)
		}
	}
}

// Subscribe sends a signal to wake at the first change after gen. If such a change has already been announced,
// Subscribe sends the signal immediately.
func (v *Version) Subscribe(wake chan<- struct{}, gen uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if gen < v.announced {
		signal(wake)
	}
	if v.waiters == nil {
		v.waiters = map[chan<- struct{}]uint64{}
	}
	v.waiters[wake] = gen
}

// Unsubscribe removes the subscription of wake.
func (v *Version) Unsubscribe(wake chan<- struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.waiters, wake)
	v.left = time.Now()
}

// Unwaited returns how long there has been no subscription.
func (v *Version) Unwaited() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.waiters) > 0 {
		return 0
	}
	return time.Since(v.left)
}

func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
