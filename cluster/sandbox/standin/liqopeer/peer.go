// Package liqopeer fakes Liqo on both clusters of a peering. It contains the controllers for authentication, offloading
// and foreign clusters, the crd-replicator, the webhooks, and the Node part of the virtual kubelet.
//
// The code for one cluster has no admin access to the other: it connects with the kubeconfigs in its own cluster's
// Secrets. The objects determine which cluster is the consumer. Several peerings can exist at the same time, also in
// opposite directions. Each of Liqo's programs runs in a cluster while the Deployment with the same name is available.
//
// Source: liqotech/liqo v1.2.0 (e9f4428d3). Below, C stands for pkg/liqo-controller-manager:
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
//   - The stand-in does not replicate with a kubeconfig that refers to files or programs. Upstream does.
//   - A slice outside of a tenant namespace is ignored. Upstream sets its CSR. Storage classes and similar settings are
//     missing.
//   - Quotas and certificate signing requests have labels of our own. A request has no generated name, and is deleted
//     with its slice. Upstream keeps it.
//   - A selector is matched only against Nodes; upstream also matches a VirtualNode without a Node
//     (pkg/utils/virtualnode).
//   - Pods on a virtual Node are force-deleted; upstream evicts them. The kubelet's Deployment has no replicas, so
//     OffloadingVirtualNodeStatus follows the VirtualNodes. The Node of a provider that does not answer is NotReady,
//     not Unknown.
//   - A ForeignCluster is created only for a tenant namespace, and a change to a Secret updates its status immediately.
//     Upstream does not watch Secrets, and leaves the status incomplete while a gateway has no Deployment.
//   - A Tenant is not reconciled while its namespace lacks the labels. Upstream creates another namespace
//     (namespaceManager.go).
//   - VirtualNodes need no VkOptionsTemplate, and the label that skips webhooks is ignored. Messages are our own.
//
// Not implemented: the handshake with nonces, renewals, AWS, proxies, and the offloading of pods.
package liqopeer

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

// Options contains admin credentials for both clusters.
type Options struct{ Local, Remote *rest.Config }

// Peer is a running fake of Liqo on both clusters.
type Peer struct{ ends []func() }

// Start runs Liqo until Close is called or ctx is done. Liqo need not be installed yet.
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

// Close stops Liqo and removes its webhooks. All other objects remain.
func (p *Peer) Close() {
	for i := len(p.ends) - 1; i >= 0; i-- {
		p.ends[i]()
	}
	p.ends = nil
}

// site is one cluster with a fake Liqo.
type site struct {
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
	seen    *standin.Seen
	checks  *checks              // health of the API servers that this cluster connects to
	remotes remotes              // clusters that the replicator writes to
	drained map[types.UID]string // by UID of a Tenant: the resource version that was drained

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
