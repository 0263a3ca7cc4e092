package liqopeer

import (
	"hash/fnv"
	"io"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	lively = 3 * time.Second // how long after a change no look is skipped
	rarely = 3               // otherwise every third look runs
)

// pace is shared by the looks of both clusters: a change that one of them sees may soon affect the others.
type pace struct{ changed atomic.Int64 } // Unix time in nanoseconds

// looks counts the looks of one controller.
type looks struct {
	pace  *pace
	ticks int
	seen  uint64
}

// skip reports whether the next look can be skipped.
func (l *looks) skip() bool {
	l.ticks++
	return time.Since(time.Unix(0, l.pace.changed.Load())) > lively && l.ticks%rarely != 0
}

// saw records the sum of a look's objects.
func (l *looks) saw(sum uint64) {
	if sum != l.seen {
		l.seen = sum
		l.pace.changed.Store(time.Now().UnixNano())
	}
}

// sum adds up the versions of objects.
type sum struct{ total uint64 }

// add adds an object. The order does not matter.
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
