package steps

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Tried describes a trial, such as a Job, a watch or a claim. A verdict depends on a trial if the state itself can't be
// read.
type Tried struct {
	At time.Time    // when the trial ran; zero if it never ran, and then the verdict is unchanged
	On []Dependency // what the result depends on
	// Again is how to repeat the trial, if Check.FixedBy alone does not.
	Again string
}

// Dependency is something that a trial depends on. Since is when it last changed, or zero if that is not known.
type Dependency struct {
	What  string // such as "the proxy's pods were started"
	Since time.Time
}

// changed returns the dependency with the latest change after the trial. If none has changed since, it returns nil. API
// servers' timestamps have a resolution of one second.
func (t Tried) changed() *Dependency {
	var last *Dependency
	for i, g := range t.On {
		if g.Since.Truncate(time.Second).After(t.At) && (last == nil || g.Since.After(last.Since)) {
			last = &t.On[i]
		}
	}
	return last
}

// Outdated reports whether a dependency has changed since the trial.
func (t Tried) Outdated() bool { return !t.At.IsZero() && t.changed() != nil }

// Aged returns r, the result of a passing check that is based on a trial. If a dependency has changed since the trial,
// it returns a warning instead.
func Aged(ctx context.Context, env Env, check *Check, r Result) Result {
	t, err := check.Tried(ctx, env)
	if absent := (*AbsentError)(nil); errors.As(err, &absent) {
		return Skipped("cannot determine what the last trial depended on: %s", absent.Error())
	}
	if err != nil {
		return Errored(err)
	}
	g := t.changed()
	if t.At.IsZero() || g == nil {
		return r
	}
	at, since := t.At.UTC().Format(time.DateTime), g.Since.UTC().Format(time.DateTime)
	return Result{
		Status: Warn, Fix: t.Again, Lines: r.Lines,
		Found: fmt.Sprintf(
			"last tried on %s, before %s (%s): try it again. The last result was: %s", at, g.What, since, r.Found,
		),
	}
}
