package engine

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/tracked"
	"carrick/steps"
)

// settleWithin is how long apply waits for the checks that an action fixes, and for an object that is being deleted. A
// check in status Waiting has until its own timeout.
const settleWithin = 60 * time.Second

// knownWithin is how long planning an action waits for objects that the previous actions create.
const knownWithin = 10 * time.Second

// planKnown plans a job right before it is applied. It retries for at most knownWithin, because the cluster might not
// have processed the latest changes yet. For an object that is being deleted, it first waits settleWithin.
func (s *Session) planKnown(ctx context.Context, j job, say steps.Progress) (Planned, bool, error) {
	began, said := time.Now(), false
	known := began
	for {
		t := Trace{at: time.Now()}
		var traced context.Context
		traced, t.reads = tracked.WithTrace(ctx)
		now, wanted, err := s.planJob(traced, j)
		if err != nil || !wanted || now.Pending == "" || now.Refused {
			return now, wanted, err
		}
		due := known.Add(knownWithin)
		if now.ending != "" {
			due = began.Add(settleWithin)
			if !said {
				say.Say("%s: waiting: %s", s.guide.Sides[j.side].Name, now.Pending)
				said = true
			}
		}
		if s.changedBy(ctx, t, due) != nil {
			return now, wanted, ctx.Err()
		}
		if now.ending != "" {
			known = time.Now()
		}
	}
}

// until probes a cell until good returns true, for at most settleWithin. While the status is Waiting, the check's own
// timeout applies instead. It does not wait for a permanent failure. The returned result is that of the last probe. The error is non-nil only if ctx is done.
func (s *Session) until(ctx context.Context, c steps.Cell, good func(steps.Result) bool) (steps.Result, error) {
	check, _ := s.guide.Check(c.Check)
	began := time.Now()
	short, cancel := context.WithDeadline(ctx, began.Add(max(settleWithin, check.Timeout)))
	defer cancel()
	var last steps.Result
	for {
		r, t := s.Probe(short, c)
		if short.Err() != nil && last.Status != steps.Pending {
			return last, ctx.Err() // the probe was cancelled, so its result is void
		}
		if last = r; good(r) || short.Err() != nil {
			return r, ctx.Err()
		}
		if r.Permanent {
			return r, nil
		}
		if apierrors.IsForbidden(r.Err) && time.Since(began) > forbiddenFor {
			return r, nil // waiting does not grant the permission
		}
		due := began.Add(settleWithin)
		if r.Status == steps.Waiting {
			due = began.Add(max(settleWithin, check.Timeout))
		}
		if s.changedBy(short, t, due) != nil {
			return r, ctx.Err()
		}
	}
}

// changedBy is like Changed, but returns an error if nothing has changed by the time due.
func (s *Session) changedBy(ctx context.Context, t Trace, due time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	return s.Changed(ctx, t)
}
