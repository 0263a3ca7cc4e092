package extension

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Rights returns the minimal permissions of the extension. everywhere contains the permissions in all namespaces.
// beside contains the permissions in the namespace of the lease. Both are empty if the extension creates nothing for
// profiles.
//
// To create a binding, a user needs all permissions in the role, or the verb bind on the role.
func Rights(o Options) (everywhere, beside []rbacv1.PolicyRule) {
	if !o.Profiles.wanted() {
		return nil, nil
	}
	everywhere = []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{profileKind.Group}, Resources: []string{profileKind.Resource}, Verbs: []string{"list", "watch"}},
	}
	if o.PSPRole != "" {
		everywhere = append(everywhere,
			rbacv1.PolicyRule{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"get", "create"},
			},
			rbacv1.PolicyRule{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{o.PSPRole},
				Verbs: []string{"bind"},
			},
		)
	}
	if o.Level != "" {
		everywhere = append(
			everywhere,
			rbacv1.PolicyRule{
				APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"patch"},
			},
		)
	}
	if !o.Elects {
		return everywhere, nil
	}
	_, lease := o.lease()
	return everywhere, []rbacv1.PolicyRule{
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{lease},
			Verbs: []string{"get", "update"},
		},
	}
}
