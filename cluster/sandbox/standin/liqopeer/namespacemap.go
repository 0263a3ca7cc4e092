package liqopeer

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepNamespaces fakes the NamespaceMap controller on the provider. It creates and deletes the namespaces that
// consumers offload.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/offloading/namespacemap-controller: enforcement.go and
// namespacemap_controller.go.
func (l *look) keepNamespaces(ctx context.Context) error {
	var all []error
	for i := range l.maps {
		if m := &l.maps[i]; m.Labels[origin] != "" && l.replicatedFrom(m.ObjectMeta, m.Labels[origin]) {
			all = append(all, l.keepMap(ctx, m))
		}
	}
	return errors.Join(all...)
}

func (l *look) keepMap(ctx context.Context, m *nsMap) error {
	going := m.DeletionTimestamp != nil
	if !going {
		if err := l.hold(ctx, namespaceMaps, m, mapFinalizer); err != nil {
			return err
		}
	}
	now := mapStatus{CurrentMapping: map[string]mapping{}}
	for here, there := range m.Spec.DesiredMapping {
		if !going {
			now.CurrentMapping[here] = mapping{RemoteNamespace: there, Phase: l.makeNamespace(ctx, m, here, there)}
		}
	}
	for here, was := range m.Status.CurrentMapping {
		if next, asked := now.CurrentMapping[here]; asked && next.RemoteNamespace == was.RemoteNamespace {
			continue
		}
		left, err := l.endNamespace(ctx, m, was.RemoteNamespace)
		if err != nil {
			return err
		}
		if _, asked := now.CurrentMapping[here]; left && !asked {
			now.CurrentMapping[here] = mapping{RemoteNamespace: was.RemoteNamespace, Phase: terminating}
		}
	}
	if len(m.Status.CurrentMapping)+len(now.CurrentMapping) > 0 {
		if err := report(ctx, l.site, namespaceMaps, m, now); err != nil {
			return err
		}
	}
	if going && len(now.CurrentMapping) == 0 {
		return l.release(ctx, namespaceMaps, m, mapFinalizer)
	}
	return nil
}

func manager(m *nsMap) string { return m.Namespace + "/" + m.Name }

// makeNamespace creates a namespace for a consumer and binds the roles for its virtual kubelets. It returns the phase
// of the mapping. An existing unmanaged namespace stays unchanged.
func (l *look) makeNamespace(ctx context.Context, m *nsMap, here, there string) (phase string) {
	n := l.namespace(there)
	if n == nil {
		_, err := l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: there, Labels: map[string]string{remoteClusterID: m.Labels[origin]},
			Annotations: map[string]string{managedBy: manager(m), originalName: here, standIn: markText},
		}}, metav1.CreateOptions{FieldManager: controllerManager})
		if err != nil {
			return loopBackOff
		}
	} else if n.Annotations[managedBy] != manager(m) {
		return loopBackOff
	}
	_, err := l.client.RbacV1().RoleBindings(there).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Namespace, Annotations: map[string]string{managedBy: manager(m), standIn: markText},
			Labels: map[string]string{remoteClusterID: m.Labels[origin], "app.kubernetes.io/managed-by": "liqo"},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: kubeletRole},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: m.Labels[origin]}},
	}, metav1.CreateOptions{FieldManager: controllerManager})
	if err != nil && !apierrors.IsAlreadyExists(err) && m.Status.CurrentMapping[here].Phase != accepted {
		return loopBackOff
	}
	return accepted
}

// endNamespace deletes a consumer's namespace. left reports whether the namespace still exists.
func (l *look) endNamespace(ctx context.Context, m *nsMap, name string) (left bool, err error) {
	n := l.namespace(name)
	if n == nil || n.Annotations[managedBy] != manager(m) {
		return false, nil
	}
	if n.DeletionTimestamp != nil {
		return true, nil
	}
	return true, ignoreMissing(l.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}))
}
