package engine

import (
	"context"
	"errors"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// Liveness is the current state of one side. The screen shows it in the line about the sides.
type Liveness struct {
	Name    string        // the context, or the host's root directory
	Version string        // Kubernetes version; "" on a host
	Latency time.Duration // latency of one request
	Absent  string        // why there is neither a cluster nor a host, or ""
	Trouble string        // why the side does not answer, or ""
}

// Liveness checks whether a side answers. The trace determines when to check again, as for a probe.
func (s *Session) Liveness(ctx context.Context, side steps.Side) (Liveness, Trace) {
	end := s.ends[side]
	p, t := Liveness{Name: clean.Text(end.Name)}, Trace{at: time.Now()}
	switch {
	case end.absent():
		p.Absent = s.whyAbsent(side)
		return p, t
	case end.Cluster == nil:
		return p, t
	}
	ctx, t.reads = tracked.WithTrace(tracked.WithLooks(ctx, s.looks))
	ctx, cancel := context.WithTimeout(ctx, s.checkTimeout())
	defer cancel()
	v, err := end.Cluster.Version(ctx)
	// The version is cached for a while. A watched read notices at once when the side stops answering or recovers. This
	// works even if the read is forbidden.
	if _, silent := end.Cluster.UID(ctx); errors.As(silent, new(*failure.StaleError)) {
		err = silent
	}
	if err != nil {
		p.Trouble = failure.Explain(err)
		return p, t
	}
	p.Version, p.Latency = clean.Text(v.Git), v.Latency
	return p, t
}
