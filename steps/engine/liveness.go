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

// Liveness is how one side stands at this moment: what a line of the sides shows.
type Liveness struct {
	Name    string        // the context or the host's root folder
	Version string        // of Kubernetes; "" on a host
	Latency time.Duration // of one request
	Absent  string        // why nothing stands there; "": something does
	Trouble string        // why it does not answer, in plain words; "": it does
}

// Liveness asks a side whether it is there. The trace tells when to ask again, as
// that of a probe does.
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
	ctx, cancel := context.WithTimeout(ctx, s.settleTimeout())
	defer cancel()
	v, err := end.Cluster.Version(ctx)
	// The version is kept for a while; a read that is watched knows at once
	// when the side goes and when it is back. Whether it is allowed is not asked.
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
