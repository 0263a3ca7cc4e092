package liqopeer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Values of a Tenant's fields and conditions.
const (
	keysExchange = "KeysExchange"
	active       = "Active"
	cordoned     = "Cordoned"
	drained      = "Drained"
)

// admitTenants fakes the Tenant controller on the provider.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/authentication/tenant-controller/tenant_controller.go
// (Reconcile, handleTenantCordoned, handleTenantUncordoned, handleTenantDrained) and pkg/tenantNamespace.
func (l *look) admitTenants(ctx context.Context) error {
	if len(l.tenants) == 0 {
		return nil
	}
	roles, err := l.roles(ctx)
	if err != nil || roles == nil {
		return err // upstream reconciles nothing unless both roles exist
	}
	var all []error
	for i := range l.tenants {
		all = append(all, l.admitTenant(ctx, &l.tenants[i], roles))
	}
	return errors.Join(all...)
}

// roles returns the ClusterRoles for tenants by label. It returns nil if one is missing.
func (l *look) roles(ctx context.Context) (map[string]string, error) {
	found, err := l.client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{
		LabelSelector: fmt.Sprintf("%s in (%s,%s)", nameLabel, remoteControlPlane, kubeletClusterWide),
	})
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, role := range found.Items {
		names[role.Labels[nameLabel]] = role.Name
	}
	if len(names) < 2 {
		return nil, nil
	}
	return names, nil
}

func (l *look) admitTenant(ctx context.Context, t *tenant, roles map[string]string) error {
	if t.DeletionTimestamp != nil {
		if err := l.unbind(ctx, t.Spec.ClusterID, roles); err != nil {
			return err
		}
		return l.release(ctx, tenants, t, tenantFinalizer)
	}
	if err := l.hold(ctx, tenants, t, tenantFinalizer); err != nil {
		return err
	}
	if t.Spec.TenantCondition == drained {
		return l.drain(ctx, t, roles)
	}
	if err := l.cordonSlices(ctx, t); err != nil {
		return err
	}
	if t.Spec.AuthzPolicy == keysExchange {
		return l.warn(ctx, refer(t), "NonceNotFound",
			fmt.Sprintf("no nonce exists for cluster %q: this tenant waits for a handshake", t.Spec.ClusterID))
	}
	names := l.tenantNamespaces(t.Spec.ClusterID)
	if len(names) == 0 {
		return nil // without these labels, the webhook denies every write to the Tenant
	}
	if len(names) > 1 {
		return l.warn(ctx, refer(t), "TenantNamespaceCreationFailed",
			fmt.Sprintf("multiple tenant namespaces found for clusterid %q: %s", t.Spec.ClusterID, strings.Join(names, ", ")))
	}
	if err := l.bind(ctx, t, roles[kubeletClusterWide]); err != nil {
		return err
	}
	return report(ctx, l.site, tenants, t, tenantStatus{TenantNamespace: names[0]})
}

// cordonSlices annotates the slices of a cordoned Tenant's consumer, so that their Quotas are cordoned, too. If the
// Tenant is not cordoned, it removes the annotation.
func (l *look) cordonSlices(ctx context.Context, t *tenant) error {
	var all []error
	for i := range l.slices {
		s := &l.slices[i]
		if s.Labels[replicated] != yes || s.Labels[origin] != t.Spec.ClusterID {
			continue
		}
		_, marked := s.Annotations[cordonTenant]
		if wanted := t.Spec.TenantCondition == cordoned; wanted != marked {
			now := map[string]string{cordonTenant: yes}
			maps.Copy(now, s.Annotations)
			if !wanted {
				delete(now, cordonTenant)
			}
			all = append(all, l.put(ctx, resourceSlices, s, "/metadata/annotations", now))
		}
	}
	return errors.Join(all...)
}

func bindingName(role string) string { return "liqo-binding-" + role }

// bind binds the given ClusterRole to the consumer's virtual kubelets. An admin must bind the ClusterRole for the
// consumer's control plane, because this fake does not implement the handshake.
func (l *look) bind(ctx context.Context, t *tenant, role string) error {
	name := bindingName(role) + "-" + t.Spec.ClusterID
	bindings := l.client.RbacV1().ClusterRoleBindings()
	if _, err := bindings.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	_, err := bindings.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{remoteClusterID: t.Spec.ClusterID}, Annotations: mark(),
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: t.Spec.ClusterID}},
	}, metav1.CreateOptions{})
	return err
}

func (l *look) unbind(ctx context.Context, id string, roles map[string]string) error {
	name := bindingName(roles[kubeletClusterWide]) + "-" + id
	return ignoreMissing(l.client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}))
}

// drain removes the consumer's permissions and all objects that the consumer has replicated. It runs once per resource
// version of the Tenant, because upstream's controller watches only the Tenant (SetupWithManager).
func (l *look) drain(ctx context.Context, t *tenant, roles map[string]string) error {
	if l.drained[t.UID] == t.ResourceVersion {
		return nil
	}
	all := []error{l.unbind(ctx, t.Spec.ClusterID, roles)}
	for _, namespace := range l.tenantNamespaces(t.Spec.ClusterID) {
		err := l.client.RbacV1().RoleBindings(namespace).Delete(
			ctx, bindingName(roles[remoteControlPlane]), metav1.DeleteOptions{},
		)
		all = append(all, ignoreMissing(err))
	}
	for i := range l.slices {
		if s := &l.slices[i]; l.replicatedFrom(s.ObjectMeta, t.Spec.ClusterID) {
			all = append(all, l.remove(ctx, resourceSlices, s))
		}
	}
	for i := range l.maps {
		if m := &l.maps[i]; l.replicatedFrom(m.ObjectMeta, t.Spec.ClusterID) {
			all = append(all, l.remove(ctx, namespaceMaps, m))
		}
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	l.drained[t.UID] = t.ResourceVersion
	return nil
}

// replicatedFrom reports whether consumer id has replicated an object to its tenant namespace.
func (l *look) replicatedFrom(o metav1.ObjectMeta, id string) bool {
	return o.Labels[replicated] == yes && o.Labels[origin] == id && l.remoteOf(o.Namespace) == id
}

// tenantOf returns the Tenant of consumer id, or nil.
func (l *look) tenantOf(id string) *tenant {
	for i := range l.tenants {
		if l.tenants[i].Spec.ClusterID == id {
			return &l.tenants[i]
		}
	}
	return nil
}
