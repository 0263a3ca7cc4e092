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
	answered bool                         // the API server has answered
	records  map[string]record            // by namespace and name
	sorted   []record                     // the same, sorted; nil: not sorted yet
	objects  []*unstructured.Unstructured // the objects of sorted
	err      error                        // the API server's error: refused, not served
	stale    *failure.StaleError          // set while the API server does not answer
	polled   bool
}

// view is the result of a read for one caller.
type view struct {
	list    []*unstructured.Unstructured // the objects of a list
	records []record                     // the same, with the requested values of Secrets
	record  *record                      // of one object; nil: it does not exist
	gen     uint64                       // the version of the read
	err     error
}

// view returns the current result. The caller holds the mutex of the read.
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

// want adds keys of a Secret to those whose values are kept. If the current attempt has already dropped a value of
// these keys, want ends that attempt, so that another one reads the value.
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

// keeps reports whether the read keeps the values of these keys. Keys that do not exist do not count.
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

// publish makes records the result of the read, and wakes waiting callers if it differs from the last one.
func (r *read) publish(records map[string]record, polled bool) {
	r.c.outages.heal()
	r.mu.Lock()
	recovered := r.fails > 0
	differs := !r.answered || r.err != nil || r.stale != nil || r.polled != polled ||
		!maps.EqualFunc(r.records, records, record.same)
	r.content = content{answered: true, records: records, polled: polled}
	r.settle(differs)
	r.mu.Unlock()
	if recovered {
		r.c.nudgeAll()
	}
}

// update applies one change that a watch delivered.
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
}

// refuse makes err the result of the read.
func (r *read) refuse(err error, polled bool) {
	r.c.outages.heal()
	r.mu.Lock()
	defer r.mu.Unlock()
	differs := !r.answered || r.stale != nil || r.err == nil || r.err.Error() != err.Error() || r.polled != polled
	r.content = content{answered: true, err: err, polled: polled}
	r.settle(differs)
}

// settle ends a loss, because there is an answer. The caller holds the mutex.
func (r *read) settle(differs bool) {
	r.good = time.Now()
	r.lost, r.cause = time.Time{}, nil
	r.calm()
	r.tell(differs)
}

// tell wakes the callers that wait for the first answer, and, if differs is set, those that wait for a change. The
// caller holds the mutex.
func (r *read) tell(differs bool) {
	if differs {
		r.version.Bump()
	}
	close(r.turned)
	r.turned = make(chan struct{})
}

// lose records that this read has no answer. The read becomes stale after Options.StaleAfter, or immediately if the
// loss of the whole cluster has been reported.
func (r *read) lose(since time.Time, cause error) {
	said := r.c.outages.said()
	patience := r.c.staleAfter(r.c.outages.everAnswered())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost.IsZero() {
		r.lost = since
	}
	r.cause = cause
	switch {
	case r.stale != nil:
	case said != nil:
		r.grow(said)
	case r.patient == nil:
		r.patient = time.AfterFunc(time.Until(r.lost.Add(patience)), r.impatient)
	}
}

// excuse ends a loss that has not been reported, after a refusal that does not count yet (see grace).
func (r *read) excuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.answered || r.stale != nil {
		return
	}
	r.lost, r.cause = time.Time{}, nil
	r.calm()
}

// calm stops the timer that reports a loss. The caller holds the mutex.
func (r *read) calm() {
	if r.patient != nil {
		r.patient.Stop()
		r.patient = nil
	}
}

// impatient reports the loss when the timer fires.
func (r *read) impatient() {
	r.mu.Lock()
	lost, cause := r.lost, r.cause
	r.patient = nil
	if !lost.IsZero() {
		r.grow(r.c.stale(lost, cause))
	}
	r.mu.Unlock()
	if !lost.IsZero() && r.c.outages.living() == 0 && !r.c.wire.lastHeard().After(lost) {
		r.c.outages.lose(lost, cause)
	}
}

// grow makes the content stale and wakes callers. The caller holds the mutex.
func (r *read) grow(said *failure.StaleError) {
	if r.stale != nil {
		return
	}
	r.stale = said
	r.tell(true)
}

// order returns the records of a list and their objects, sorted by namespace and name.
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
