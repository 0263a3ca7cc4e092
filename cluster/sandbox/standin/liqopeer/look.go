package liqopeer

import (
	"context"
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/sandbox/standin"
)

// look is one pass of the controller manager. It contains a snapshot of the objects.
type look struct {
	*site
	id      string // ID of this cluster
	modules enabled
	flags   map[string]string // flags of the controller manager, without leading dashes

	namespaces   []corev1.Namespace
	secrets      []corev1.Secret // only Secrets with a control plane kubeconfig
	nodes        []corev1.Node   // only virtual nodes
	tenants      []tenant
	slices       []slice
	identities   []identity
	virtualNodes []virtualNode
	maps         []nsMap
	offloadings  []offloading
	quotas       []quota
	foreigns     []foreign
	networks     map[schema.GroupVersionResource][]network // objects of package liqonet
}

// enabled contains the enabled modules of Liqo. All are enabled by default.
type enabled struct{ networking, authentication, offloading bool }

// manage runs one pass of all controllers.
func (s *site) manage(ctx context.Context) error {
	if s.managing.skip() {
		return nil
	}
	deployment, err := standin.Got[appsv1.Deployment](ctx, s.seen, kubeDeployments, home, controllerManager)
	if err != nil || deployment.Status.AvailableReplicas == 0 {
		return err
	}
	flags := flagsOf(deployment)
	l := &look{site: s, modules: modulesOf(flags), flags: flags}
	if l.id, err = s.clusterID(ctx); err != nil || l.id == "" {
		return err
	}
	if err := l.see(ctx); err != nil {
		return err
	}
	s.managing.saw(l.sum())
	var all []error
	if l.modules.authentication {
		all = append(all, l.admitTenants(ctx), l.askForSlices(ctx), l.answerSlices(ctx), l.keepIdentities(ctx))
	}
	if l.modules.offloading {
		all = append(all, l.keepVirtualNodes(ctx), l.keepNamespaces(ctx), l.offload(ctx))
	}
	return errors.Join(append(all, l.describeForeigns(ctx))...)
}

func modulesOf(flags map[string]string) enabled {
	return enabled{
		flags["networking-enabled"] != "false", flags["authentication-enabled"] != "false",
		flags["offloading-enabled"] != "false",
	}
}

func flagsOf(d *appsv1.Deployment) map[string]string {
	out := map[string]string{}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range append(slices.Clone(c.Command), c.Args...) {
			if name, value, is := strings.Cut(strings.TrimLeft(arg, "-"), "="); is {
				out[name] = value
			}
		}
	}
	return out
}

// clusterID returns this cluster's ID, or "" if it is not set.
func (s *site) clusterID(ctx context.Context) (string, error) {
	found, err := standin.Listed[corev1.ConfigMap](ctx, s.seen, kubeConfigMaps, home, nameLabel+"="+clusterIDConfigMap)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].Data[clusterIDKey], nil
}

// see lists the objects for this pass. If the cluster has no tenant namespaces, it lists only a few kinds.
func (l *look) see(ctx context.Context) error {
	var err, err1, err2 error
	if l.namespaces, err = standin.Listed[corev1.Namespace](ctx, l.seen, kubeNamespaces, "", ""); err != nil {
		return err
	}
	l.offloadings, err1 = list[offloadingSpec, offloadingStatus](ctx, l.seen, offloadings)
	l.foreigns, err2 = list[foreignSpec, foreignStatus](ctx, l.seen, foreigns)
	if err := errors.Join(err1, err2); err != nil || !slices.ContainsFunc(l.namespaces, isTenantNamespace) {
		return err
	}
	return errors.Join(l.seeKubernetes(ctx), l.seeTenants(ctx), l.seeNetworks(ctx))
}

func (l *look) seeKubernetes(ctx context.Context) error {
	var err1, err2 error
	l.secrets, err1 = standin.Listed[corev1.Secret](ctx, l.seen, kubeSecrets, "", identityType+"="+controlPlaneType)
	l.nodes, err2 = standin.Listed[corev1.Node](ctx, l.seen, kubeNodes, "", nodeType+"="+virtual)
	return errors.Join(err1, err2)
}

func (l *look) seeTenants(ctx context.Context) error {
	var err1, err2, err3, err4, err5, err6 error
	l.tenants, err1 = list[tenantSpec, tenantStatus](ctx, l.seen, tenants)
	l.slices, err2 = list[sliceSpec, sliceStatus](ctx, l.seen, resourceSlices)
	l.identities, err3 = list[identitySpec, identityStatus](ctx, l.seen, identities)
	l.virtualNodes, err4 = list[virtualNodeSpec, conditioned](ctx, l.seen, virtualNodes)
	l.maps, err5 = list[mapSpec, mapStatus](ctx, l.seen, namespaceMaps)
	l.quotas, err6 = list[quotaSpec, struct{}](ctx, l.seen, quotas)
	return errors.Join(err1, err2, err3, err4, err5, err6)
}

func (l *look) seeNetworks(ctx context.Context) error {
	l.networks = map[schema.GroupVersionResource][]network{}
	for _, resource := range []schema.GroupVersionResource{configurations, gatewayServers, gatewayClients, connections} {
		found, err := list[struct{}, networkStatus](ctx, l.seen, resource)
		if err != nil {
			return err
		}
		l.networks[resource] = found
	}
	return nil
}

// sum returns a checksum of all listed objects. It skips Connections, because their status changes every few seconds.
func (l *look) sum() uint64 {
	var s sum
	for i := range l.namespaces {
		s.add(&l.namespaces[i])
	}
	for i := range l.secrets {
		s.add(&l.secrets[i])
	}
	addAll(&s, l.tenants)
	addAll(&s, l.slices)
	addAll(&s, l.identities)
	addAll(&s, l.virtualNodes)
	addAll(&s, l.maps)
	addAll(&s, l.offloadings)
	addAll(&s, l.foreigns)
	return s.total
}

func isTenantNamespace(n corev1.Namespace) bool {
	return n.Labels[tenantNamespace] == yes && n.Labels[remoteClusterID] != ""
}

func (l *look) namespace(name string) *corev1.Namespace {
	for i := range l.namespaces {
		if l.namespaces[i].Name == name {
			return &l.namespaces[i]
		}
	}
	return nil
}

// tenantNamespaces returns the tenant namespaces for cluster id. Liqo requires exactly one.
func (l *look) tenantNamespaces(id string) []string {
	var names []string
	for _, n := range l.namespaces {
		if isTenantNamespace(n) && n.Labels[remoteClusterID] == id {
			names = append(names, n.Name)
		}
	}
	return names
}

// remoteOf returns the remote cluster of a tenant namespace, or "" if it is not a tenant namespace.
func (l *look) remoteOf(namespace string) string {
	n := l.namespace(namespace)
	if n == nil || !isTenantNamespace(*n) {
		return ""
	}
	return n.Labels[remoteClusterID]
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
