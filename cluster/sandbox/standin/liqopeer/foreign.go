package liqopeer

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describeForeigns fakes the ForeignCluster controller. It creates a ForeignCluster when the first object of a peering
// exists. Secrets and slices do not count. The ForeignCluster remains after the last object is deleted. On a consumer
// without its own Tenant, the ForeignCluster has no tenant namespace.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/core/foreigncluster-controller:
// foreigncluster_controller.go (foreignclusterEnqueuer), status.go, conditions.go and apiserverchecker.go.
func (l *look) describeForeigns(ctx context.Context) error {
	var all []error
	for _, n := range l.namespaces {
		id := n.Labels[remoteClusterID]
		known := slices.ContainsFunc(l.foreigns, func(f foreign) bool { return f.Name == id })
		if !isTenantNamespace(n) || n.DeletionTimestamp != nil || known || !l.peers(id) {
			continue
		}
		all = append(all, create(ctx, l.site, foreigns, "ForeignCluster", foreign{
			ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{remoteClusterID: id}, Annotations: mark()},
			Spec:       foreignSpec{ClusterID: id},
		}))
	}
	for i := range l.foreigns {
		all = append(all, l.describe(ctx, &l.foreigns[i]))
	}
	return errors.Join(all...)
}

// peers reports whether a peering with cluster id has any objects.
func (l *look) peers(id string) bool {
	for _, kind := range l.networks {
		if slices.ContainsFunc(kind, func(n network) bool { return n.Labels[remoteClusterID] == id }) {
			return true
		}
	}
	return l.tenantOf(id) != nil || l.consumes(id)
}

// consumes reports whether this cluster has an Identity or a virtual node for provider id.
func (l *look) consumes(id string) bool {
	return slices.ContainsFunc(l.identities, func(i identity) bool { return i.Spec.ClusterID == id }) ||
		slices.ContainsFunc(l.virtualNodes, func(n virtualNode) bool { return n.Spec.ClusterID == id })
}

func (l *look) describe(ctx context.Context, f *foreign) error {
	secret, config := l.controlPlane(f.Spec.ClusterID)
	if f.DeletionTimestamp != nil || secret == nil {
		if err := l.release(ctx, foreigns, f, checkerFinalizer); err != nil {
			return err
		}
	} else if err := l.hold(ctx, foreigns, f, checkerFinalizer); err != nil {
		return err
	}
	if f.DeletionTimestamp != nil {
		return nil
	}
	id := f.Spec.ClusterID
	now := foreignStatus{Role: l.role(id, secret != nil)}
	if t := l.tenantOf(id); t != nil {
		now.TenantNamespace.Local = t.Status.TenantNamespace
		now.Modules.Authentication = module{true, with(f.Status.Modules.Authentication.Conditions, tenantCondition(t))}
	}
	if secret != nil {
		now.APIServerURL = config
		now.Modules.Authentication.Enabled = true
		now.Conditions = l.serverCondition(ctx, f, secret)
	}
	now.Modules.Offloading = l.offloadingModule(id, f.Status.Modules.Offloading)
	var err error
	if now.Modules.Networking, err = l.networkModule(ctx, id, f.Status.Modules.Networking); err != nil {
		return err
	}
	return report(ctx, l.site, foreigns, f, now)
}

// role returns the role of cluster id. The cluster is a provider if this cluster has a kubeconfig for its control
// plane or a virtual node for it.
func (l *look) role(id string, kubeconfig bool) string {
	provider := kubeconfig ||
		slices.ContainsFunc(l.virtualNodes, func(n virtualNode) bool { return n.Spec.ClusterID == id })
	switch consumer := l.tenantOf(id) != nil; {
	case consumer && provider:
		return "ConsumerAndProvider"
	case consumer:
		return "Consumer"
	case provider:
		return "Provider"
	}
	return "Unknown"
}

// controlPlane returns the Secret with the kubeconfig for a provider, and the address of the provider's API server. It
// returns nil unless there is exactly one such Secret and its kubeconfig is valid.
func (l *look) controlPlane(id string) (*corev1.Secret, string) {
	var found []*corev1.Secret
	for i := range l.secrets {
		s := &l.secrets[i]
		if s.Labels[identityType] == controlPlaneType && s.Labels[remoteClusterID] == id && s.DeletionTimestamp == nil {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return nil, ""
	}
	config, err := connect(found[0].Data["kubeconfig"])
	if err != nil {
		return nil, ""
	}
	return found[0], config.Host
}

func (l *look) serverCondition(ctx context.Context, f *foreign, secret *corev1.Secret) []condition {
	said, why := l.checks.ask(ctx, "foreign cluster "+f.Name, secret.Data["kubeconfig"])
	c := condition{
		Type: "APIServerStatus", Status: "Established", Reason: "APIServerReady", Message: "the API server answers",
	}
	switch {
	case !said:
		return f.Status.Conditions
	case why != nil:
		c = condition{
			Type: "APIServerStatus", Status: "Error", Reason: "APIServerNotReady",
			Message: "the API server does not answer: " + why.Error(),
		}
	}
	return with(f.Status.Conditions, c)
}

// tenantCondition reports whether the Tenant has a namespace. The Tenant need not be active.
func tenantCondition(t *tenant) condition {
	if t.Status.TenantNamespace == "" {
		return condition{
			Type: "AuthTenantStatus", Status: "NotReady", Reason: "TenantNotReady",
			Message: "tenant " + t.Name + " has no namespace yet",
		}
	}
	return condition{
		Type: "AuthTenantStatus", Status: "Ready", Reason: "TenantReady", Message: "tenant " + t.Name + " is ready",
	}
}
