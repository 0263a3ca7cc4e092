// Package liqopeer plays, on both clusters of a peering, Liqo's authentication, offloading and foreign-cluster
// controllers, its crd-replicator, its webhooks, and its virtual kubelet as far as the Node goes.
//
// No code here knows both clusters: each one reaches the other with the kubeconfigs in its own Secrets. Which one is
// the consumer follows from the objects, so several peerings, or one in either direction, work at once. A cluster plays
// a program while the Deployment of that name is available.
//
// Source: liqotech/liqo v1.2.0 (e9f4428d3). C is pkg/liqo-controller-manager:
//
//   - Tenants: C/authentication/tenant-controller, pkg/tenantNamespace
//   - slices of the consumer, Identities: C/authentication (local-, remoteresourceslice-controller, identitycreator-,
//     identity-controller, forge, csr.go), C/virtualnodecreator-controller
//   - slices on the provider, Quotas: pkg/identityManager, pkg/utils/apiserver, C/quotacreator-controller
//   - VirtualNodes and Nodes: C/offloading/virtualnode-controller, pkg/vkMachinery, pkg/virtualKubelet/liqoNodeProvider
//   - NamespaceOffloadings, NamespaceMaps: C/offloading (namespaceoffloading-, namespacemap-controller)
//   - ForeignClusters: C/core/foreigncluster-controller
//   - replication: internal/crdReplicator; webhooks: pkg/webhooks, deployments/liqo/templates/webhooks
//
// Known differences:
//
//   - A kubeconfig that names files or programs begins no replication; upstream tries them.
//   - A slice outside a tenant namespace is ignored; upstream fills in its CSR. Storage classes and the like are
//     missing.
//   - Quotas and requests carry labels of ours, a request has no generated name, and it is deleted with its slice;
//     upstream leaves it.
//   - A selector is matched against Nodes alone; upstream matches a VirtualNode without one, too
//     (pkg/utils/virtualnode).
//   - Pods on a virtual Node are deleted by force; upstream evicts them. The kubelet's Deployment has no replicas, so
//     that OffloadingVirtualNodeStatus is what the VirtualNodes say. A Node of a silent provider is NotReady, not
//     Unknown.
//   - A ForeignCluster appears only for a tenant namespace, and follows Secrets at once; upstream hears of no Secret,
//     and leaves half a status while a gateway has no Deployment.
//   - A Tenant whose namespace lost its labels waits; upstream creates another namespace (namespaceManager.go).
//   - VirtualNodes need no VkOptionsTemplate, and the label that skips webhooks is not heeded. Messages are our own.
//
// Not played: the handshake with nonces, renewals, AWS, proxies, and anything about pods: none is offloaded.
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
		config: config, client: client, dynamic: untyped, seen: standin.See(ctx, untyped),
		checks:   &checks{known: map[string]*check{}},
		drained:  map[types.UID]string{},
		managing: looks{pace: together}, replicating: looks{pace: together},
	}, nil
}
