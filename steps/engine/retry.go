package engine

import (
	"context"
	"time"

	"carrick/cluster/failure"
	"carrick/steps"
)

// silentWithin is how long an API server may not answer in the middle of an apply or an undo: as long as a restart
// takes.
const silentWithin = 30 * time.Second

// waitOut runs a part of an apply or an undo, and runs it again while it ends because an API server does not answer,
// for silentWithin. What is run may be run twice: Doer promises that.
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
