package tracked

import (
	"sync"
	"time"
)

// A storm of writes is not a storm of probes: of one version, so many
// announcements are immediate, and then one comes every pace.
const (
	atOnce = 8
	pace   = 25 * time.Millisecond
)

// A source is something that was read and may differ later.
type source interface {
	// Changes is the counter that tells whether it differs.
	Changes() *Version
	// Heard tells when what was read was last known to hold, and whether it is
	// learnt by polling.
	Heard() (at time.Time, polled bool)
}

// Version counts the changes of one source and wakes who waits for the next.
// The zero value is ready. Announcements are paced; changes that come before the
// next one is due are announced together.
type Version struct {
	mu        sync.Mutex
	n         uint64    // changes so far
	announced uint64    // of these, what waiters may know
	paid      time.Time // announcements are paid for until then, one pace each
	timer     *time.Timer
	waiters   map[chan<- struct{}]uint64
	left      time.Time // when the last waiter went
}

// Now returns the number of changes so far.
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

// Subscribe signals wake, now or later, once there is a change after gen.
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

// Unsubscribe ends what subscribe began.
func (v *Version) Unsubscribe(wake chan<- struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.waiters, wake)
	v.left = time.Now()
}

// Unwaited tells for how long nobody has waited for the next change.
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
