package liqopeer

import (
	corev1 "k8s.io/api/core/v1"
)

// networkModule says how the tunnel fares, from the other half's objects.
func (l *look) networkModule(id string, was module) module {
	now := module{}
	if !l.modules.networking {
		return now
	}
	add := func(kind, status string) {
		now.Enabled = true
		all := with(was.Conditions, condition{Type: kind, Status: status, Reason: kind + status})
		for _, c := range all {
			if c.Type == kind {
				now.Conditions = append(now.Conditions, c)
			}
		}
	}
	for _, c := range l.networks[configurations] {
		if c.Labels[remoteClusterID] == id {
			add("NetworkConfigurationStatus", readyIf(configured(&c)))
		}
	}
	for _, g := range l.networks[gatewayServers] {
		if g.Labels[remoteClusterID] == id {
			add("NetworkGatewayPresence", "Ready")
			add("NetworkGatewayServerStatus", readyIf(g.Status.Endpoint != nil && len(g.Status.Endpoint.Addresses) > 0))
		}
	}
	for _, g := range l.networks[gatewayClients] {
		if g.Labels[remoteClusterID] == id {
			add("NetworkGatewayPresence", "Ready")
			add("NetworkGatewayClientStatus", readyIf(g.Status.SecretRef != nil))
		}
	}
	for _, c := range l.networks[connections] {
		if c.Labels[remoteClusterID] != id {
			continue
		}
		status, known := map[string]string{"Connected": "Established", "Error": "Error"}[c.Status.Value]
		if !known {
			status = "Pending"
		}
		add("NetworkConnectionStatus", status)
	}
	return now
}

// configured tells whether a Configuration is ready. Before 1.2.0 a label says
// so, and no condition.
func configured(c *network) bool {
	return says(c.Status.Conditions, "NetworkCIDRsConfigured") == "True" || c.Labels["configuration.liqo.io/configured"] == yes
}

// offloadingModule says how the virtual nodes of a provider fare.
func (l *look) offloadingModule(id string, was module) module {
	var all, running, good int
	for _, n := range l.virtualNodes {
		if n.Spec.ClusterID != id {
			continue
		}
		all++
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
	now := with(was.Conditions, condition{Type: "OffloadingVirtualNodeStatus", Status: share(running, all), Reason: "VirtualNodes" + share(running, all)})
	return module{true, with(now, condition{Type: "OffloadingNodeStatus", Status: share(good, all), Reason: "Nodes" + share(good, all)})}
}

func readyIf(ok bool) string {
	if ok {
		return "Ready"
	}
	return "NotReady"
}

// share is the word for so many of all.
func share(some, all int) string {
	switch some {
	case all:
		return "Ready"
	case 0:
		return "NotReady"
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
