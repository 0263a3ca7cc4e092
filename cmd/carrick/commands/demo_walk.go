package commands

import (
	"context"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// whatBreaks calls do and returns the cells that fail only afterwards. If the guide is not applied yet, other cells fail
// before and after the call.
func (a *app) whatBreaks(ctx context.Context, l *linkfile.Link, do func() error) ([]steps.Cell, error) {
	look := func() (*engine.Board, []steps.Cell, error) {
		s, err := a.session(l, cluster.Options{Once: true})
		if err != nil {
			return nil, nil, err
		}
		defer s.Close()
		cells := s.Guide().Cells()
		b, _, err := a.look(ctx, s, cells, 0)
		return b, cells, err
	}
	before, _, err := look()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, cells, err := look()
	if err != nil {
		return nil, err
	}
	var out []steps.Cell
	for _, c := range cells {
		now := after.Verdict(c).Status
		if (now == steps.Fail || now == steps.Unknown) && now != before.Verdict(c).Status {
			out = append(out, c)
		}
	}
	return out, nil
}
