package steps

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Tried is what a verdict rests on where the thing itself can't be looked at: something that was tried once, such as a
// Job, a watch or a claim.
type Tried struct {
	At time.Time    // when it was tried; zero: nothing was, and the verdict stands as it is
	On []Dependency // what it was tried on
	// Again is how to try it again, where Check.FixedBy alone does not.
	Again string
}

// Ground is something that was tried on, and since when it is as it is now: zero where that is not known.
type Dependency struct {
	What  string // "the proxy's pods were started"
	Since time.Time
}

// changed is the ground that changed last after the trial; nil: none did. Clocks of API servers tell whole seconds.
func (t Tried) changed() *Dependency {
	var last *Dependency
	for i, g := range t.On {
		if g.Since.Truncate(time.Second).After(t.At) && (last == nil || g.Since.After(last.Since)) {
			last = &t.On[i]
		}
	}
	return last
}

// Outdated reports whether something that was tried on has changed since.
func (t Tried) Outdated() bool { return !t.At.IsZero() && t.changed() != nil }

// Aged is the pass of a check that goes by something that was tried once: a warning where what it was tried on has
// changed since.
func Aged(ctx context.Context, env Env, check *Check, r Result) Result {
	t, err := check.Tried(ctx, env)
	if absent := (*AbsentError)(nil); errors.As(err, &absent) {
		return Skipped("on what it was tried can't be told: %s", absent.Error())
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
		Found: fmt.Sprintf("tried on %s, before %s (%s): try it again. Then it was: %s", at, g.What, since, r.Found),
	}
}
