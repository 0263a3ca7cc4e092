package engine

import (
	"context"
	"time"

	"carrick/cluster/failure"
	"carrick/steps"
)

// silentWithin is how long an API server may be unreachable during an apply or an undo: the time of a restart.
const silentWithin = 30 * time.Second

// waitOut runs a part of an apply or an undo, and for silentWithin runs it again while it fails because an API server
// does not answer. The part may run twice, so it must be idempotent, as Doer requires.
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
