// Package liqopeer is a stand-in for the authentication, offloading and
// foreign-cluster controllers of Liqo v1.2.0 (liqotech/liqo,
// pkg/liqo-controller-manager), for its crd-replicator (internal/crdReplicator),
// for its virtual kubelet as far as the virtual node goes, and for its
// webhooks (pkg/webhooks). It plays them on both clusters.
//
// Nobody here sees two clusters: each one reaches the other with the
// kubeconfigs that stand in its own Secrets, and with the rights that those
// have there. Who is consumer and who is provider follows from the objects, so
// two peerings, or one in either direction, work side by side. What a cluster
// does it does while the Deployment of that name is available in it.
//
// Not played: the handshake with nonces, the renewal of certificates, AWS,
// proxies, and anything about pods: none is offloaded.
package liqopeer

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

// Options are the admins of the two clusters.
type Options struct{ Local, Remote *rest.Config }

// Peer plays on both clusters.
type Peer struct{ ends []func() }

// Start plays until Close, or until ctx ends. Neither cluster needs anything of
// Liqo yet.
func Start(ctx context.Context, o Options) (_ *Peer, err error) {
	p := &Peer{}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	hooks, err := listen()
	if err != nil {
		return nil, err
	}
	p.ends = append(p.ends, hooks.close)
	together := &pace{}
	for name, config := range map[string]*rest.Config{"local": o.Local, "remote": o.Remote} {
		s, err := newSite(ctx, config, together)
		if err != nil {
			return nil, err
		}
		if err := hooks.register(ctx, name, s); err != nil {
			return nil, err
		}
		p.ends = append(p.ends, s.seen.Close, func() { hooks.unregister(s) }, s.checks.wait,
			standin.Loop(ctx, s.manage), standin.Loop(ctx, s.replicate))
	}
	return p, nil
}

// Close ends it and leaves what it made in the clusters, but for the webhooks.
func (p *Peer) Close() {
	for i := len(p.ends) - 1; i >= 0; i-- {
		p.ends[i]()
	}
	p.ends = nil
}

// site is one cluster on which Liqo is played.
type site struct {
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
	seen    *standin.Seen
	checks  *checks              // of the API servers that this cluster talks to
	remotes remotes              // clients of those that its replicator writes to
	drained map[types.UID]string // Tenants, and the version in which each was drained

	managing, replicating looks
}

func newSite(ctx context.Context, config *rest.Config, together *pace) (*site, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &site{
		config: config, client: client, dynamic: untyped, seen: standin.See(ctx, untyped), checks: &checks{known: map[string]*check{}},
		drained:  map[types.UID]string{},
		managing: looks{pace: together}, replicating: looks{pace: together},
	}, nil
}
