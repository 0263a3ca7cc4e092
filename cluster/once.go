package cluster

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/failure"
)

// runOnce repeats the read's request until the API server answers or an outage is reported.
func (r *read) runOnce() {
	r.single.Lock()
	defer r.single.Unlock()
	for fails := 0; r.life.Err() == nil && r.c.outages.said() == nil; fails++ {
		start := time.Now()
		records, err := r.fetch(r.life)
		switch {
		case err == nil:
			r.publish(records, false)
			return
		case r.answeredBy(err):
			return
		}
		r.lose(start, err)
		if answerOf(err) == unreachable {
			r.c.outages.lose(start, err)
		}
		pause := r.backoff(fails, err)
		if isPermanent(err) || time.Since(r.started)+pause > r.c.staleAfter(r.c.outages.everAnswered()) {
			r.giveUp(start, err)
			return
		}
		r.pause(pause)
	}
}

// answeredBy reports whether err is a final answer from the API server. If it is, answeredBy publishes it as the result
// of the read.
func (r *read) answeredBy(err error) bool {
	switch answerOf(err) {
	case absent:
		r.publish(map[string]record{}, false)
	case unserved:
		r.refuse(fmt.Errorf("read %s: %w (%w)", r.key.gvr.GroupResource(), failure.ErrNotServed, err), false)
	case refused, unauthorized, rejected, unwatchable:
		r.refuse(err, false)
	default:
		return false
	}
	return true
}

// giveUp makes the read stale immediately.
func (r *read) giveUp(since time.Time, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makeStale(r.c.stale(since, cause))
}

func isAbsent(err error) bool { return apierrors.IsNotFound(err) }
