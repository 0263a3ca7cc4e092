package action

import (
	"context"

	"carrick/steps"
)

// Call is an action written in Go. Use it for a change that is neither a manifest nor a file, such as an API call or
// the restart of a workload. Its functions must obey the contract of Doer: Make is idempotent, and Revert undoes only
// what Make did.
type Call struct {
	Preview func(context.Context, steps.Env) (steps.Change, error)
	Make    func(context.Context, steps.Env, steps.Progress) error
	// Left returns what Revert would undo. If Left or Revert is nil, the action cannot be undone, and Keeps says why.
	Left   func(context.Context, steps.Env) (steps.Change, error)
	Revert func(context.Context, steps.Env, steps.Progress) error
	Keeps  string
	Files  []string // assets that Make reads
	// Exports returns what to do manually instead, such as a file with the request body and the command that sends it. If
	// it is nil, the export contains only the action's title.
	Exports func(context.Context, steps.Env) ([]Exported, error)
}

// Plan implements steps.Doer. It returns the result of Preview.
func (c Call) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	return c.Preview(ctx, env)
}

// Do implements steps.Doer. It calls Make.
func (c Call) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	return c.Make(ctx, env, say)
}

// PlanUndo implements steps.Doer. It returns the result of Left. If Left is nil, it returns an item that is kept.
func (c Call) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	if c.Left == nil {
		return steps.Change{Items: []steps.Item{{Verb: steps.Leave, What: env.Action, Note: c.Keeps}}}, nil
	}
	return c.Left(ctx, env)
}

// Undo implements steps.Doer. It calls Revert if Revert is set.
func (c Call) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	if c.Revert == nil {
		return nil
	}
	return c.Revert(ctx, env, say)
}
