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

// Render returns the objects of the named action as they would be created, with the link's ownership labels. It also
// renders actions that the answers don't configure. It reads facts and writes nothing. Values of Secrets are not
// masked, but a Secret from a Mint has no data. If the action writes no objects, Render returns nil.
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

// Wanted reports whether the answers configure the named action.
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

// RenderFile renders the file of the named action for the current state of the host. It writes nothing. If the action
// writes no file, it returns nil.
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
