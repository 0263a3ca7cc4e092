package liqopeer

import (
	"hash/fnv"
	"io"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	lively = 3 * time.Second // after a change every look is taken
	rarely = 3               // later one in so many
)

// pace is what the looks of both clusters have in common: what one of them has
// seen change, the others may soon have to do with.
type pace struct{ changed atomic.Int64 } // Unix time in nanoseconds

// looks are those of one controller.
type looks struct {
	pace  *pace
	ticks int
	seen  uint64
}

// skip tells whether the next look can be left out.
func (l *looks) skip() bool {
	l.ticks++
	return time.Since(time.Unix(0, l.pace.changed.Load())) > lively && l.ticks%rarely != 0
}

// saw takes the sum of what a look saw.
func (l *looks) saw(sum uint64) {
	if sum != l.seen {
		l.seen = sum
		l.pace.changed.Store(time.Now().UnixNano())
	}
}

// sum adds up the versions of objects.
type sum struct{ total uint64 }

// add takes an object in, in any order.
func (s *sum) add(o metav1.Object) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, string(o.GetUID())+o.GetResourceVersion())
	s.total += h.Sum64()
}

func addAll[S, T any](s *sum, all []object[S, T]) {
	for i := range all {
		s.add(&all[i])
	}
}
