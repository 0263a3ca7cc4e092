package liqopeer

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/standin"
)

const (
	kubeletPrefix  = "vk-"        // prefix of the virtual kubelet's Deployment
	bindingPrefix  = "liqo-node-" // prefix of the virtual kubelet's ClusterRoleBinding
	kubeletLocal   = "liqo-virtual-kubelet-local"
	virtualNodeOf  = "liqo.io/virtual-node"
	componentLabel = "offloading.liqo.io/component"
)

// startKubelet creates the objects of a virtual kubelet. As in upstream, the VirtualNode does not own them. The
// Deployment has no replicas, because the sandbox runs no virtual kubelet.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/offloading/virtualnode-controller/virtualkubelet.go
// (ensureVirtualKubeletDeploymentPresence) and pkg/vkMachinery/forge/creation.go.
func (l *look) startKubelet(ctx context.Context, n *virtualNode) error {
	_, err := standin.Got[appsv1.Deployment](ctx, l.seen, kubeDeployments, n.Namespace, kubeletPrefix+n.Name)
	if !apierrors.IsNotFound(err) {
		return err
	}
	labels := map[string]string{
		componentLabel: "virtual-kubelet", remoteClusterID: n.Spec.ClusterID, virtualNodeOf: n.Name,
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Namespace: n.Namespace, Annotations: mark(), Labels: map[string]string{managed: yes},
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: meta(n.Name)}
	_, err1 := l.client.CoreV1().ServiceAccounts(n.Namespace).Create(ctx, account, metav1.CreateOptions{})
	bind := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: bindingPrefix + n.Name, Annotations: mark(),
			Labels: map[string]string{managed: yes, remoteClusterID: n.Spec.ClusterID},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: kubeletLocal},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: n.Name, Namespace: n.Namespace}},
	}
	_, err2 := l.client.RbacV1().ClusterRoleBindings().Create(ctx, bind, metav1.CreateOptions{})
	var none int32
	runs := &appsv1.Deployment{ObjectMeta: meta(kubeletPrefix + n.Name), Spec: appsv1.DeploymentSpec{
		Replicas: &none,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{ServiceAccountName: n.Name, Containers: []corev1.Container{{
				Name: "virtual-kubelet", Image: "ghcr.io/liqotech/virtual-kubelet:v1.2.0",
			}}},
		},
	}}
	for key, value := range labels {
		runs.Labels[key] = value
	}
	_, err3 := l.client.AppsV1().Deployments(n.Namespace).Create(
		ctx, runs, metav1.CreateOptions{FieldManager: controllerManager},
	)
	return errors.Join(ignoreTaken(err1), ignoreTaken(err2), ignoreTaken(err3))
}

// endKubelet deletes the objects of a virtual kubelet (in upstream: ensureVirtualKubeletDeploymentAbsence).
func (l *look) endKubelet(ctx context.Context, n *virtualNode) error {
	err1 := l.client.AppsV1().Deployments(n.Namespace).Delete(ctx, kubeletPrefix+n.Name, metav1.DeleteOptions{})
	err2 := l.client.RbacV1().ClusterRoleBindings().Delete(ctx, bindingPrefix+n.Name, metav1.DeleteOptions{})
	err3 := l.client.CoreV1().ServiceAccounts(n.Namespace).Delete(ctx, n.Name, metav1.DeleteOptions{})
	return errors.Join(ignoreMissing(err1), ignoreMissing(err2), ignoreMissing(err3))
}

func ignoreTaken(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
