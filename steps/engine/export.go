package engine

import (
	"context"
	"errors"

	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
)

// Export lists what a link would create, in the order in which it is applied.
type Export struct{ Actions []ExportedAction }

// ExportedAction is one action of an export.
type ExportedAction struct {
	Step, Action, Title string
	Side                steps.Side
	Things              []action.Exported
	Pending             string // why the content can't be determined yet, or ""
}

// Export returns what the link would create, whether or not it already exists. The result depends only on answers and
// facts. Export returns an error if answers are missing or a side does not answer. The only file that it writes is the
// link file (see keepTaken).
func (s *Session) Export(ctx context.Context) (*Export, error) {
	ctx = tracked.WithLooks(ctx, s.looks)
	if err := s.keepTaken(ctx); err != nil {
		return nil, err
	}
	out := &Export{}
	for _, j := range s.jobs(ctx, Scope{}) {
		a, wanted, err := s.exportJob(ctx, j)
		if err != nil {
			return nil, err
		}
		if wanted {
			out.Actions = append(out.Actions, a)
		}
	}
	return out, nil
}

func (s *Session) exportJob(ctx context.Context, j job) (ExportedAction, bool, error) {
	use := &usage{}
	env := s.env(ctx, j.side, use)
	env.Action, env.Exporting = j.action.Name, true
	out := ExportedAction{Step: j.step.Name, Action: j.action.Name, Title: j.action.Title, Side: j.side}
	if !j.action.Wanted(j.step, env) {
		return out, false, use.sound()
	}
	things, err := action.ExportOf(ctx, env, j.action)
	absent := (*steps.AbsentError)(nil)
	switch {
	case use.sound() != nil:
		err = use.sound()
	case len(use.missing) > 0:
		return out, false, &steps.MissingError{Questions: use.missing}
	case errors.As(err, &absent):
		out.Pending = absent.Error()
		return out, true, nil
	}
	if err != nil {
		return out, false, &ActionError{j.step.Name, j.action.Name, s.guide.Sides[j.side].Name, "export", err}
	}
	out.Things = things
	return out, true, action.CheckExport(out.Action, out.Things)
}

// Kubectl returns the beginning of a kubectl command for a side, as Env.Kubectl does.
func (s *Session) Kubectl(ctx context.Context, side steps.Side) string {
	return s.env(ctx, side, &usage{}).Kubectl()
}
