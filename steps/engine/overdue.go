package engine

import (
	"fmt"
	"time"

	"carrick/steps"
)

// sincePass returns r. If r is waiting, it waits at the earliest since the cell was last good.
func (s *Session) sincePass(c steps.Cell, r steps.Result, now time.Time) steps.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Status.Holds() {
		s.passed[c] = now
	}
	if last := s.passed[c]; r.Status == steps.Waiting && !r.Since.IsZero() && last.After(r.Since) {
		r.Since = last
	}
	return r
}

// overdue turns a pending result into a failure after the check's timeout. Before that, it schedules a probe for the
// end of the timeout.
func overdue(check *steps.Check, r steps.Result, now time.Time) steps.Result {
	if r.Status != steps.Waiting || check.Timeout == 0 || r.Since.IsZero() {
		return r
	}
	due := r.Since.Add(check.Timeout)
	if now.Before(due) {
		if r.Again.IsZero() || due.Before(r.Again) {
			r.Again = due
		}
		return r
	}
	r.Status = steps.Fail
	r.Found = fmt.Sprintf("%s (for %s; the limit is %s)", r.Found, now.Sub(r.Since).Round(time.Second), check.Timeout)
	return r
}
