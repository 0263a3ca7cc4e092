package engine

import (
	"context"
	"time"

	"carrick/cluster/failure"
	"carrick/steps"
)

// silentWithin is how long an API server can be unreachable during an apply or an undo. It covers a restart of the API
// server.
const silentWithin = 30 * time.Second

// waitOut runs a part of an apply or an undo. If the API server does not answer, it repeats the part for up to
// silentWithin. The part must therefore be idempotent, as Doer requires.
func waitOut(ctx context.Context, say steps.Progress, part func() error) error {
	ends := time.Now().Add(silentWithin)
	for said := false; ; said = true {
		err := part()
		if !failure.Silent(err) || !time.Now().Before(ends) {
			return err
		}
		if !said {
			say.Say("waiting: %s", failure.Explain(err))
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}
