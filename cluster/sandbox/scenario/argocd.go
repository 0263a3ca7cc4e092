package scenario

import (
	"context"

	"carrick/cluster/sandbox/standin/argocd"
	"carrick/cluster/sandbox/world"
)

// argoCD starts a fake application controller in the local cluster. The scenario has no other fakes.
func argoCD(ctx context.Context, sides Sides, _ map[string]bool) (*Play, error) {
	controller, err := argocd.Start(ctx, sides[local].Config)
	if err != nil {
		return nil, err
	}
	return &Play{
		Values: world.Values{"destination.server": sides[remote].Config.Host},
		Settle: func(context.Context) error { return nil }, Close: controller.Close,
	}, nil
}
