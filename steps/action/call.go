package action

import (
	"context"

	"carrick/steps"
)

// Call is an action written in Go, for a change that is neither a manifest nor a file, such as an API call, a signed
// request or the restart of a workload. Its functions must obey the contract of a Doer: Make is idempotent, and Revert
// undoes only what Make did.
type Call struct {
	Preview func(context.Context, steps.Env) (steps.Change, error)
	Make    func(context.Context, steps.Env, steps.Progress) error
	// Left returns what Revert would undo. If Left or Revert is nil, there is nothing to undo, and Keeps says why.
	Left   func(context.Context, steps.Env) (steps.Change, error)
	Revert func(context.Context, steps.Env, steps.Progress) error
	Keeps  string
	Files  []string // assets that it reads
	// Exports returns what to do manually instead, such as the body of a request as a file and the command that sends it;
	// nil: the action's title.
	Exports func(context.Context, steps.Env) ([]Exported, error)
}

// Plan returns what Preview returns.
func (c Call) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	return c.Preview(ctx, env)
}

// Do calls Make.
func (c Call) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	return c.Make(ctx, env, say)
}

// PlanUndo returns what Left returns or, without Left, an item that is kept.
func (c Call) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	if c.Left == nil {
		return steps.Change{Items: []steps.Item{{Verb: steps.Leave, What: env.Action, Note: c.Keeps}}}, nil
	}
	return c.Left(ctx, env)
}

// Undo calls Revert, if there is one.
func (c Call) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	if c.Revert == nil {
		return nil
	}
	return c.Revert(ctx, env, say)
}
