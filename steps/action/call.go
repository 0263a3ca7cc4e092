package action

import (
	"context"

	"carrick/steps"
)

// Call is an action in Go, for what is neither a manifest nor a file: an API
// called, a request signed, a workload restarted. It has to keep the rules of
// a Doer itself: doing it twice changes nothing, undo takes back only its own.
type Call struct {
	Preview func(context.Context, steps.Env) (steps.Change, error)
	Make    func(context.Context, steps.Env, steps.Progress) error
	// Left says what Revert would take back; nil, like a nil Revert: there is
	// nothing to take back, and Keeps says why.
	Left   func(context.Context, steps.Env) (steps.Change, error)
	Revert func(context.Context, steps.Env, steps.Progress) error
	Keeps  string
	Files  []string // assets that it reads
	// Exports says what is to be done by hand in its place, such as the body of
	// a request as a file and the command that sends it; nil: the action's title.
	Exports func(context.Context, steps.Env) ([]Exported, error)
}

// Plan is Preview.
func (c Call) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	return c.Preview(ctx, env)
}

// Do is Make.
func (c Call) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	return c.Make(ctx, env, say)
}

// PlanUndo is Left.
func (c Call) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	if c.Left == nil {
		return steps.Change{Items: []steps.Item{{Verb: steps.Leave, What: env.Action, Note: c.Keeps}}}, nil
	}
	return c.Left(ctx, env)
}

// Undo is Revert.
func (c Call) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	if c.Revert == nil {
		return nil
	}
	return c.Revert(ctx, env, say)
}
