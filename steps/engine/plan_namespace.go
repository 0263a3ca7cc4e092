package engine

import (
	"context"
	"slices"

	"carrick/steps"
	"carrick/steps/action"
)

// planNamespaces completes the plan of a part of a guide. It adds actions of other parts that create required
// namespaces. It inserts each of them right before the first action that needs the namespace.
func (s *Session) planNamespaces(ctx context.Context, p *Plan, o Scope) error {
	if p.whole {
		return nil
	}
	for i := 0; i < len(p.Actions); i++ {
		side := p.Actions[i].Side
		for _, name := range p.Actions[i].missingNamespaces() {
			if slices.Contains(p.NewNamespaces(side), name) {
				continue
			}
			maker, err := s.creatorOf(ctx, name, side, o)
			if err != nil {
				return err
			}
			if maker == nil {
				p.Actions[i].noteMissing(name)
				continue
			}
			p.Actions = slices.Insert(p.Actions, i, *maker)
			i++
		}
	}
	return nil
}

// missingNamespaces returns the namespaces that an action's items require and that do not exist.
func (a *Planned) missingNamespaces() []string {
	var out []string
	for _, it := range a.Change.Items {
		if it.MissingNamespace != "" && !slices.Contains(out, it.MissingNamespace) {
			out = append(out, it.MissingNamespace)
		}
	}
	return out
}

// noteMissing adds a note to the items in a namespace that no action creates.
func (a *Planned) noteMissing(namespace string) {
	for i := range a.Change.Items {
		if it := &a.Change.Items[i]; it.MissingNamespace == namespace {
			it.Note = "namespace " + namespace + " does not exist, and no action creates it"
		}
	}
}

// creatorOf returns the plan of the action outside the scope that creates a namespace, or nil if there is none.
func (s *Session) creatorOf(ctx context.Context, namespace string, side steps.Side, o Scope) (*Planned, error) {
	for _, j := range s.jobs(ctx, Scope{Side: side}) {
		if _, writes := j.action.Doer.(action.Asset); !writes || o.covers(j.step, j.action, side) {
			continue
		}
		pl, ok, err := s.planJob(ctx, j)
		if ctx.Err() != nil {
			return nil, err
		}
		creates := slices.ContainsFunc(pl.Change.Items, func(it steps.Item) bool {
			return it.What == "Namespace "+namespace && it.Verb == steps.Create && !it.Refused
		})
		if err == nil && ok && creates {
			return &pl, nil
		}
	}
	return nil, nil
}
