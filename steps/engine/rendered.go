package engine

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/inventory"
)

// Render renders the objects of an action as they would be created, with the link's mark, whether or not the answers
// configure the action. It reads facts and writes nothing. Values of Secrets are in clear, but a Secret of a Mint has
// no data. It returns nil if the action writes no objects.
func (s *Session) Render(ctx context.Context, name string) ([]*unstructured.Unstructured, error) {
	a, _ := s.guide.Action(name)
	if a == nil {
		return nil, fmt.Errorf("the guide has no action %q", name)
	}
	written, ok := a.Doer.(action.Asset)
	if !ok {
		return nil, nil
	}
	m := written.Asset()
	use := &usage{}
	env := s.env(ctx, a.On, use)
	env.Action = a.Name
	objs, err := m.Objects(ctx, env)
	switch {
	case use.failed != nil:
		return nil, use.failed
	case len(use.missing) > 0:
		return nil, &steps.MissingError{Questions: use.missing}
	}
	for _, obj := range objs {
		inventory.SetOwnership(env, obj, nil)
	}
	return objs, err
}

// Wanted reports whether the answers configure an action.
func (s *Session) Wanted(ctx context.Context, name string) (bool, error) {
	a, step := s.guide.Action(name)
	if a == nil {
		return false, fmt.Errorf("the guide has no action %q", name)
	}
	use := &usage{}
	env := s.env(ctx, a.On, use)
	env.Action = a.Name
	wanted := a.Wanted(step, env)
	return wanted, use.sound()
}

// RenderFile renders the file of an action for the present state of the host, and writes nothing. It returns nil if the
// action writes no file.
func (s *Session) RenderFile(ctx context.Context, name string) (*action.RenderedFile, error) {
	a, _ := s.guide.Action(name)
	if a == nil {
		return nil, fmt.Errorf("the guide has no action %q", name)
	}
	use := &usage{}
	env := s.env(ctx, a.On, use)
	env.Action = a.Name
	out, err := action.RenderFile(ctx, env, a.Doer)
	return out, errors.Join(err, use.sound())
}
