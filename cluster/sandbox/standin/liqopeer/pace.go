package liqopeer

import (
	"hash/fnv"
	"io"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	lively = 3 * time.Second // after a change, every pass runs for this long
	rarely = 3               // after that, only every third pass runs
)

// pace records the last change on either cluster. All controllers share it, because a change soon affects other
// controllers.
type pace struct{ changed atomic.Int64 } // Unix time in nanoseconds

// looks counts the reconcile passes of one controller, and keeps what the last pass saw.
type looks struct {
	pace  *pace
	ticks int
	seen  uint64
}

// skip reports whether the controller can skip its next pass.
func (l *looks) skip() bool {
	l.ticks++
	return time.Since(time.Unix(0, l.pace.changed.Load())) > lively && l.ticks%rarely != 0
}

// saw records the checksum of the objects in a pass.
func (l *looks) saw(sum uint64) {
	if sum != l.seen {
		l.seen = sum
		l.pace.changed.Store(time.Now().UnixNano())
	}
}

// sum is a checksum of UIDs and resource versions.
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
