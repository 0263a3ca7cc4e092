package liqopeer

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/standin"
)

// keepNode creates a virtual node's Node and updates its status. It sends no heartbeats, because the sandbox's
// controller manager waits a year for them.
func (l *look) keepNode(ctx context.Context, n *virtualNode) error {
	nodes := l.client.CoreV1().Nodes()
	node, err := standin.Got[corev1.Node](ctx, l.seen, kubeNodes, "", n.Name)
	if apierrors.IsNotFound(err) {
		node, err = nodes.Create(ctx, newNode(n), metav1.CreateOptions{FieldManager: "virtual-kubelet"})
	}
	if err != nil {
		return err
	}
	if node.Labels[nodeType] != virtual || node.Labels[remoteClusterID] != n.Spec.ClusterID {
		return fmt.Errorf("node %s is not a virtual node of %s", n.Name, n.Spec.ClusterID)
	}
	now := node.Status.DeepCopy()
	now.NodeInfo.OperatingSystem = "linux"
	now.Capacity, now.Allocatable = n.Spec.ResourceQuota.Hard, n.Spec.ResourceQuota.Hard
	if err := l.condition(ctx, n, now); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(&node.Status, now) {
		return nil
	}
	node.Status = *now
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{FieldManager: "virtual-kubelet"})
	return err
}

// newNode returns the Node for a virtual node.
//
// Source: liqotech/liqo v1.2.0, pkg/virtualKubelet/liqoNodeProvider: setup.go (node) and utils.go
// (desiredVirtualNodeMetadata). This fake offers no StorageClass.
func newNode(n *virtualNode) *corev1.Node {
	labels := map[string]string{
		nodeType: virtual, remoteClusterID: n.Spec.ClusterID, corev1.LabelHostname: n.Name, "kubernetes.io/role": "agent",
		corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "storage.liqo.io/available": "false",
		corev1.LabelNodeExcludeBalancers: yes, "alpha.service-controller.kubernetes.io/exclude-balancer": yes,
	}
	for key, value := range n.Spec.Labels {
		labels[key] = value
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, Labels: labels,
			Annotations: map[string]string{
				standIn: "created by the sandbox instead of a virtual kubelet: no pod runs on this node",
			},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: notAllowed, Value: yes, Effect: corev1.TaintEffectNoExecute}}},
	}
}

// condition sets a Node's conditions. The conditions depend on whether the provider's API server accepts the slice's
// identity, whether the provider grants resources, and whether the tunnel is up.
//
// Source: liqotech/liqo v1.2.0, pkg/virtualKubelet/liqoNodeProvider: nodeProvider.go (Ping), conditions.go and
// reconciler.go (areResourcesReady). If the API server does not respond, upstream stops renewing the node's lease, and
// Kubernetes later sets Ready to Unknown. This fake sets Ready to False immediately.
func (l *look) condition(ctx context.Context, n *virtualNode, status *corev1.NodeStatus) error {
	if n.Spec.KubeconfigSecretRef == nil {
		return nil
	}
	secret, err := standin.Got[corev1.Secret](ctx, l.seen, kubeSecrets, n.Namespace, n.Spec.KubeconfigSecretRef.Name)
	if err != nil {
		return ignoreMissing(err)
	}
	said, why := l.checks.ask(ctx, "virtual node "+n.Namespace+"/"+n.Name, secret.Data["kubeconfig"])
	if !said {
		return nil
	}
	ready := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "stand-in: the provider's API server answers",
	}
	var network *corev1.NodeCondition
	if checked, up := l.tunnel(n); checked {
		network = &corev1.NodeCondition{
			Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "LiqoNetworkingUp",
			Message: "the tunnel is up",
		}
		if !up {
			network.Status, network.Reason, network.Message = corev1.ConditionTrue, nodeDown, "the tunnel to the provider is "+
				"not connected"
			ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", network.Message
		}
	}
	if hard := n.Spec.ResourceQuota.Hard; hard.Cpu().Sign() <= 0 || hard.Memory().Sign() <= 0 {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", "the provider grants no CPU "+
			"or no memory"
	}
	if why != nil {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", "the provider's API server "+
			"does not answer: "+why.Error()
	}
	status.Conditions = withNode(status.Conditions, ready)
	if network != nil {
		status.Conditions = withNode(status.Conditions, *network)
		return nil
	}
	status.Conditions = slices.DeleteFunc(
		status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeNetworkUnavailable },
	)
	return nil
}

// tunnel reports whether a virtual node depends on a tunnel (checked) and whether the tunnel is up. It reads both from
// the status of the ForeignCluster. The networking module is enabled if the peering has any network objects. Until the
// ForeignCluster has a status, the module counts as enabled.
//
// Source: liqotech/liqo v1.2.0, pkg/virtualKubelet/liqoNodeProvider/utils.go (applyForeignCluster, recomputeNodeState)
// and pkg/liqo-controller-manager/core/foreigncluster-controller/status.go (handleNetworkingModuleStatus).
func (l *look) tunnel(n *virtualNode) (checked, up bool) {
	if n.Spec.DisableNetworkCheck != nil && *n.Spec.DisableNetworkCheck {
		return false, false
	}
	for _, f := range l.foreigns {
		if f.Spec.ClusterID == n.Spec.ClusterID && f.Status.Role != "" {
			of := f.Status.Modules.Networking
			return of.Enabled, says(of.Conditions, "NetworkConnectionStatus") == "Established"
		}
	}
	return true, false
}

func withNode(all []corev1.NodeCondition, c corev1.NodeCondition) []corev1.NodeCondition {
	c.LastTransitionTime = metav1.NewTime(time.Now()).Rfc3339Copy()
	i := slices.IndexFunc(all, func(was corev1.NodeCondition) bool { return was.Type == c.Type })
	if i < 0 {
		c.LastHeartbeatTime = c.LastTransitionTime
		return append(all, c)
	}
	was := all[i]
	if was.Status == c.Status && was.Reason == c.Reason {
		return all
	}
	c.LastHeartbeatTime = c.LastTransitionTime
	all[i] = c
	return all
}

// endNode deletes a virtual Node and its pods, because no other controller deletes these pods.
func (l *look) endNode(ctx context.Context, node *corev1.Node) error {
	pods, err := l.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	if err != nil {
		return err
	}
	zero := int64(0)
	for _, pod := range pods.Items {
		err := l.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
		if ignoreMissing(err) != nil {
			return err
		}
	}
	return ignoreMissing(l.client.CoreV1().Nodes().Delete(
		ctx, node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}},
	))
}
