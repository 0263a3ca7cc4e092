package scenario

import (
	"context"

	"carrick/cluster/sandbox/standin/liqonet"
	"carrick/cluster/sandbox/standin/liqopeer"
)

// noAddress is the fault that load balancers of the provider's cluster get no address.
const noAddress = "load-balancer-pending"

// liqoBehaviours returns the faults that change the behaviour of fakes, each with a description.
func liqoBehaviours() map[string]string {
	return map[string]string{
		noAddress: "The provider's cluster has no load balancer implementation, so Services get no address.",
	}
}

// liqo starts the fakes of the scenario liqo: Liqo's networking in each cluster, then authentication and offloading
// between the clusters.
func liqo(ctx context.Context, sides Sides, wrong map[string]bool) (_ *Play, err error) {
	var all closers
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	all = append(all, cancel)
	values, err := liqoValues()
	if err != nil {
		return nil, err
	}
	for name, side := range sides {
		network, err := liqonet.Start(
			ctx, liqonet.Options{Config: side.Config, NoAddress: name == remote && wrong[noAddress]},
		)
		if err != nil {
			return nil, err
		}
		all = append(all, side.Kubelet.Add(network.Log), network.Close)
	}
	peer, err := liqopeer.Start(ctx, liqopeer.Options{Local: sides[local].Config, Remote: sides[remote].Config})
	if err != nil {
		return nil, err
	}
	all = append(all, peer.Close)
	return &Play{
		Values: values,
		Settle: func(context.Context) error { return nil },
		Acts: map[string]func(context.Context) error{
			"page": func(ctx context.Context) error { return liqoPage(ctx, sides) },
		},
		Close: all.close,
	}, nil
}
