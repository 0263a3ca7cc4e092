package liqopeer

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepVirtualNodes fakes the VirtualNode controller. It also fakes the part of the virtual kubelet that maintains the
// Node.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/offloading/virtualnode-controller:
// virtualnode_controller.go, deletion-routine.go and namespacemap.go.
func (l *look) keepVirtualNodes(ctx context.Context) error {
	var all []error
	for i := range l.virtualNodes {
		all = append(all, l.keepVirtualNode(ctx, &l.virtualNodes[i]))
	}
	return errors.Join(all...)
}

func (l *look) keepVirtualNode(ctx context.Context, n *virtualNode) error {
	if n.DeletionTimestamp != nil {
		return l.endVirtualNode(ctx, n)
	}
	if n.Labels[resourceSliceName] != "" && l.sliceOf(n.ObjectMeta) == nil {
		return l.remove(ctx, virtualNodes, n)
	}
	if err := l.hold(ctx, virtualNodes, n, virtualNodeFinalizer); err != nil {
		return err
	}
	if says(n.Status.Conditions, "VirtualKubelet") == "" {
		return report(ctx, l.site, virtualNodes, n, stages(n, "Creating", "Creating"))
	}
	if err := l.startKubelet(ctx, n); err != nil {
		return err
	}
	if err := l.openMap(ctx, n); err != nil {
		return err
	}
	if n.Spec.CreateNode == nil || *n.Spec.CreateNode {
		if err := l.keepNode(ctx, n); err != nil {
			return err
		}
	}
	return report(ctx, l.site, virtualNodes, n, stages(n, "Running", "Running"))
}

// endVirtualNode deletes a virtual node's objects and then removes the finalizer.
func (l *look) endVirtualNode(ctx context.Context, n *virtualNode) error {
	if !held(n, virtualNodeFinalizer) {
		return nil
	}
	node, err := l.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err == nil && node.Labels[nodeType] == virtual && node.Labels[remoteClusterID] == n.Spec.ClusterID {
		return errors.Join(report(ctx, l.site, virtualNodes, n, stages(n, "Running", "Draining")), l.endNode(ctx, node))
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err := report(ctx, l.site, virtualNodes, n, stages(n, "Deleting", "Deleting")); err != nil {
		return err
	}
	if err := l.endKubelet(ctx, n); err != nil {
		return err
	}
	if err := l.closeMap(ctx, n); err != nil {
		return err
	}
	return l.release(ctx, virtualNodes, n, virtualNodeFinalizer)
}

// stages returns the status for the given states of the virtual kubelet and the Node.
func stages(n *virtualNode, kubelet, node string) conditioned {
	all := with(
		n.Status.Conditions,
		condition{
			Type: "VirtualKubelet", Status: kubelet, Reason: "VirtualKubelet" + kubelet,
			Message: "stand-in: nothing runs on this node",
		},
	)
	return conditioned{
		with(
			all,
			condition{Type: "Node", Status: node, Reason: "Node" + node, Message: "stand-in: no pod is offloaded to this node"},
		),
	}
}

// openMap creates the NamespaceMap for a provider. The NamespaceMap has the provider's name.
func (l *look) openMap(ctx context.Context, n *virtualNode) error {
	if l.mapFor(n.Spec.ClusterID) != nil {
		return nil
	}
	return create(ctx, l.site, namespaceMaps, "NamespaceMap", nsMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Spec.ClusterID, Namespace: n.Namespace, Annotations: mark(),
			Labels: map[string]string{replication: yes, destination: n.Spec.ClusterID, remoteClusterID: n.Spec.ClusterID},
		},
		Spec: mapSpec{DesiredMapping: map[string]string{}},
	})
}

// closeMap deletes a provider's NamespaceMap when its last virtual node is deleted.
func (l *look) closeMap(ctx context.Context, last *virtualNode) error {
	for _, n := range l.virtualNodes {
		if n.Spec.ClusterID == last.Spec.ClusterID && n.DeletionTimestamp == nil {
			return nil
		}
	}
	if m := l.mapFor(last.Spec.ClusterID); m != nil {
		return l.remove(ctx, namespaceMaps, m)
	}
	return nil
}

// mapFor returns this consumer's NamespaceMap for a provider, or nil.
func (l *look) mapFor(provider string) *nsMap {
	for i := range l.maps {
		if m := &l.maps[i]; m.Name == provider && m.Labels[replication] == yes && l.remoteOf(m.Namespace) == provider {
			return m
		}
	}
	return nil
}
