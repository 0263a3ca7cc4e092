package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/failure"
)

// content is the latest result of a read.
type content struct {
	answered bool                         // set once the API server has answered
	records  map[string]record            // by namespace and name
	sorted   []record                     // records, sorted; nil: not sorted yet
	objects  []*unstructured.Unstructured // the objects of sorted
	err      error                        // the API server's error, such as refused or not served
	stale    *failure.StaleError          // set while the API server does not answer
	polled   bool
}

// view is the result of a read for one caller.
type view struct {
	list    []*unstructured.Unstructured // objects of a list
	records []record                     // records of a list, with the requested values of Secrets
	record  *record                      // record of a single object; nil: it does not exist
	gen     uint64                       // version of the read
	err     error
}

// view returns the current result. The caller must hold the read's mutex.
func (c *content) view(key readKey) view {
	switch {
	case c.stale != nil:
		return view{err: c.stale}
	case c.err != nil:
		return view{err: c.err}
	case key.name == "":
		if c.sorted == nil {
			c.sorted, c.objects = order(c.records)
		}
		return view{list: c.objects, records: c.sorted}
	}
	for _, rec := range c.records {
		return view{record: &rec}
	}
	return view{err: apierrors.NewNotFound(key.gvr.GroupResource(), key.name)}
}

// want makes the read keep the values of the given Secret keys. If the current attempt has already dropped one of these
// values, want ends the attempt. The next attempt then keeps the value.
func (r *read) want(keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := false
	for _, key := range keys {
		fresh = fresh || !r.wanted[key]
		r.wanted[key] = true
	}
	if !fresh || !r.begun || (r.answered && r.keeps(keys)) {
		return
	}
	r.begun = false
	if r.attempt != nil {
		r.attempt()
	} else if r.c.options.Once {
		r.c.work.Go(r.guardedRun)
	}
}

// keeps reports whether the read keeps the values of the given keys. It ignores keys that do not exist.
func (r *read) keeps(keys []string) bool {
	for _, rec := range r.records {
		if slices.Contains(keys, EveryKey) && len(rec.kept) < len(rec.sizes) {
			return false
		}
		for _, key := range keys {
			if _, exists := rec.sizes[key]; !exists {
				continue
			}
			if _, kept := rec.kept[key]; !kept {
				return false
			}
		}
	}
	return true
}

// publish sets the result of the read. If the result differs from the previous one, publish wakes the callers that wait
// for a change.
func (r *read) publish(records map[string]record, polled bool) {
	r.c.outages.heal()
	r.mu.Lock()
	recovered := r.fails > 0
	differs := !r.answered || r.err != nil || r.stale != nil || r.polled != polled ||
		!maps.EqualFunc(r.records, records, record.same)
	if differs && r.answered && r.key.isRBAC() {
		r.c.grants.changed()
	}
	r.content = content{answered: true, records: records, polled: polled}
	r.settle(differs)
	r.mu.Unlock()
	if recovered {
		r.c.nudgeAll()
	}
}

// update applies one event of a watch. If rec is nil, the object was deleted.
func (r *read) update(key string, rec *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.good = time.Now()
	old, had := r.records[key]
	if (rec == nil && !had) || (rec != nil && had && old.same(*rec)) {
		return
	}
	if rec == nil {
		delete(r.records, key)
	} else {
		r.records[key] = *rec
	}
	r.sorted = nil
	r.tell(true)
	if r.key.isRBAC() {
		r.c.grants.changed()
	}
}

// refuse sets err as the result of the read.
func (r *read) refuse(err error, polled bool) {
	r.c.outages.heal()
	r.mu.Lock()
	defer r.mu.Unlock()
	differs := !r.answered || r.stale != nil || r.err == nil || r.err.Error() != err.Error() || r.polled != polled
	r.content = content{answered: true, err: err, polled: polled}
	r.settle(differs)
}

// settle ends the read's outage after an answer. The caller must hold r.mu.
func (r *read) settle(differs bool) {
	r.good = time.Now()
	r.lost, r.cause = time.Time{}, nil
	r.stopLossTimer()
	r.tell(differs)
}

// tell wakes the callers that wait for the first answer. If differs is true, tell also wakes the callers that wait for
// a change. The caller must hold r.mu.
func (r *read) tell(differs bool) {
	if differs {
		r.version.Bump()
	}
	close(r.turned)
	r.turned = make(chan struct{})
}

// lose records that the API server does not answer this read. The read becomes stale after Options.StaleAfter. If an
// outage of the whole cluster has been reported, the read becomes stale immediately.
func (r *read) lose(since time.Time, cause error) {
	said := r.c.outages.said()
	timeout := r.c.staleAfter(r.c.outages.everAnswered())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost.IsZero() {
		r.lost = since
	}
	r.cause = cause
	switch {
	case r.stale != nil:
	case said != nil:
		r.makeStale(said)
	case r.lossTimer == nil:
		r.lossTimer = time.AfterFunc(time.Until(r.lost.Add(timeout)), r.reportLoss)
	}
}

// endUnreportedLoss ends the read's outage if the outage has not been reported. It is called after a 401 or 403
// response that is not final (see grace).
func (r *read) endUnreportedLoss() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.answered || r.stale != nil {
		return
	}
	r.lost, r.cause = time.Time{}, nil
	r.stopLossTimer()
}

// stopLossTimer stops the timer that would report the outage. The caller must hold r.mu.
func (r *read) stopLossTimer() {
	if r.lossTimer != nil {
		r.lossTimer.Stop()
		r.lossTimer = nil
	}
}

// reportLoss is called by lossTimer. It makes the read stale.
func (r *read) reportLoss() {
	r.mu.Lock()
	lost, cause := r.lost, r.cause
	r.lossTimer = nil
	if !lost.IsZero() {
		r.makeStale(r.c.stale(lost, cause))
	}
	r.mu.Unlock()
	if !lost.IsZero() && r.c.outages.living() == 0 && !r.c.wire.lastHeard().After(lost) {
		r.c.outages.lose(lost, cause)
	}
}

// makeStale makes the content stale and wakes the waiting callers. The caller must hold r.mu.
func (r *read) makeStale(said *failure.StaleError) {
	if r.stale != nil {
		return
	}
	r.stale = said
	r.tell(true)
}

func order(records map[string]record) ([]record, []*unstructured.Unstructured) {
	sorted := slices.SortedFunc(maps.Values(records), func(a, b record) int {
		return cmp.Or(
			cmp.Compare(a.object.GetNamespace(), b.object.GetNamespace()), cmp.Compare(a.object.GetName(), b.object.GetName()),
		)
	})
	if sorted == nil {
		sorted = []record{}
	}
	objects := make([]*unstructured.Unstructured, len(sorted))
	for i, rec := range sorted {
		objects[i] = rec.object
	}
	return sorted, objects
}
