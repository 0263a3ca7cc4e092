package scenario

import (
	"context"

	"carrick/cluster/sandbox/standin/liqonet"
	"carrick/cluster/sandbox/standin/liqopeer"
)

// With the fault noAddress, load balancers in the provider's cluster get no address.
const noAddress = "load-balancer-pending"

// liqoBehaviours returns descriptions of the faults that change how fakes behave, by fault.
func liqoBehaviours() map[string]string {
	return map[string]string{
		noAddress: "The provider's cluster has no load balancer implementation, so Services get no address.",
	}
}

// liqo starts a fake of Liqo's networking in each cluster. Then it starts the fakes of authentication and offloading
// between both clusters.
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
