package liqopeer

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/sandbox/standin"
)

const notReady = "NotReady"

// networkModule returns the state of the tunnel. If at least one object of package liqonet exists, each missing one
// counts as not ready. A Configuration always counts as ready, regardless of its status.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/core/foreigncluster-controller/status.go
// (handleNetworkingModuleStatus and the functions that it calls).
func (l *look) networkModule(ctx context.Context, id string, was module) (module, error) {
	configuration, connection := l.networkOf(configurations, id), l.networkOf(connections, id)
	server, client := l.networkOf(gatewayServers, id), l.networkOf(gatewayClients, id)
	if !l.modules.networking || configuration == nil && connection == nil && server == nil && client == nil {
		return module{}, nil
	}
	now := module{Enabled: true}
	add := func(kind, status, reason string) {
		now.Conditions = append(now.Conditions, since(was.Conditions, kind, status, reason))
	}
	if configuration != nil {
		add("NetworkConfigurationStatus", ready, "NetworkConfigurationPresence")
	} else {
		add("NetworkConfigurationStatus", notReady, "NetworkConfigurationMissing")
	}
	if server != nil || client != nil {
		add("NetworkGatewayPresence", ready, "GatewayPresence")
	} else {
		add("NetworkGatewayPresence", notReady, "GatewayMissing")
	}
	for kind, gateway := range map[string]*network{
		"NetworkGatewayClientStatus": client, "NetworkGatewayServerStatus": server,
	} {
		if gateway == nil {
			continue
		}
		d, err := standin.Got[appsv1.Deployment](ctx, l.seen, kubeDeployments, gateway.Namespace, "gw-"+gateway.Name)
		if ignoreMissing(err) != nil {
			return was, err
		}
		add(kind, gatewayState(d), "Gateways"+gatewayState(d))
	}
	add("NetworkConnectionStatus", connectionState(connection), "Connection"+connectionReason(connection))
	slices.SortFunc(now.Conditions, func(a, b condition) int { return strings.Compare(a.Type, b.Type) })
	return now, nil
}

// networkOf returns the object of the given kind in the peering with cluster id, or nil.
func (l *look) networkOf(kind schema.GroupVersionResource, id string) *network {
	for i := range l.networks[kind] {
		if n := &l.networks[kind][i]; n.Labels[remoteClusterID] == id {
			return n
		}
	}
	return nil
}

// gatewayState returns the state of a gateway. d is nil if its Deployment does not exist.
func gatewayState(d *appsv1.Deployment) string {
	switch {
	case d == nil || d.Status.ReadyReplicas == 0:
		return notReady
	case d.Status.UnavailableReplicas > 0:
		return "SomeNotReady"
	}
	return ready
}

// connectionState returns the state of a Connection. c is nil if it does not exist.
func connectionState(c *network) string {
	switch {
	case c == nil:
		return notReady
	case c.Status.Value == "Connected":
		return "Established"
	case c.Status.Value == "Connecting":
		return "Pending"
	}
	return "Error"
}

func connectionReason(c *network) string {
	if c == nil {
		return "Missing"
	}
	return connectionState(c)
}

// since returns a condition. If status and reason are the same as in was, it keeps the transition time.
func since(was []condition, kind, status, reason string) condition {
	for _, c := range with(was, condition{Type: kind, Status: status, Reason: reason}) {
		if c.Type == kind {
			return c
		}
	}
	return condition{}
}

// offloadingModule returns the state of a provider's virtual nodes. Upstream checks the pods of virtual kubelets. The
// sandbox runs no such pods, so this fake checks the conditions of the VirtualNodes.
//
// Source: the same file as for networkModule (handleOffloadingModuleStatus).
func (l *look) offloadingModule(id string, was module) module {
	var all, running, expected, good int
	for _, n := range l.virtualNodes {
		if n.Spec.ClusterID != id {
			continue
		}
		all++
		if n.Spec.CreateNode != nil && *n.Spec.CreateNode {
			expected++
		}
		if says(n.Status.Conditions, "VirtualKubelet") == "Running" && says(n.Status.Conditions, "Node") == "Running" {
			running++
		}
		for i := range l.nodes {
			if l.nodes[i].Name == n.Name && nodeReady(&l.nodes[i]) {
				good++
			}
		}
	}
	if all == 0 {
		return module{}
	}
	now := with(
		was.Conditions,
		condition{
			Type: "OffloadingVirtualNodeStatus", Status: share(running, all), Reason: "VirtualNodes" + share(running, all),
		},
	)
	return module{
		true,
		with(
			now, condition{Type: "OffloadingNodeStatus", Status: share(good, expected), Reason: "Nodes" + share(good, expected)},
		),
	}
}

// share returns the state of a module. all is the number of its parts, and some is the number of ready parts.
func share(some, all int) string {
	switch some {
	case all:
		return ready
	case 0:
		return notReady
	}
	return "SomeNotReady"
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
