package liqopeer

import (
	"context"
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// look is one look of the controller manager at its cluster: what it saw, all
// at one time, and what it does about it.
type look struct {
	*site
	id      string // of this cluster
	modules enabled

	namespaces   []corev1.Namespace
	secrets      []corev1.Secret // with the kubeconfig of a control plane
	nodes        []corev1.Node   // virtual ones
	tenants      []tenant
	slices       []slice
	identities   []identity
	virtualNodes []virtualNode
	maps         []nsMap
	offloadings  []offloading
	quotas       []quota
	foreigns     []foreign
	networks     map[schema.GroupVersionResource][]network // the other half's objects
}

// enabled are the modules of this Liqo, all unless a flag says no.
type enabled struct{ networking, authentication, offloading bool }

// manage looks at the cluster once, and does what each controller would.
func (s *site) manage(ctx context.Context) error {
	if s.managing.skip() {
		return nil
	}
	deployment, err := s.client.AppsV1().Deployments(home).Get(ctx, controllerManager, metav1.GetOptions{})
	if err != nil || deployment.Status.AvailableReplicas == 0 {
		return err
	}
	l := &look{site: s, modules: modulesOf(deployment)}
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

// modulesOf reads the flags of the controller manager.
func modulesOf(d *appsv1.Deployment) enabled {
	on := enabled{true, true, true}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range append(slices.Clone(c.Command), c.Args...) {
			name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			switch name {
			case "networking-enabled":
				on.networking = value != "false"
			case "authentication-enabled":
				on.authentication = value != "false"
			case "offloading-enabled":
				on.offloading = value != "false"
			}
		}
	}
	return on
}

// clusterID returns how this cluster is called, "" where nothing says so.
func (s *site) clusterID(ctx context.Context) (string, error) {
	found, err := s.client.CoreV1().ConfigMaps(home).List(ctx, metav1.ListOptions{LabelSelector: nameLabel + "=" + clusterIDConfigMap})
	if err != nil || len(found.Items) == 0 {
		return "", err
	}
	return found.Items[0].Data[clusterIDKey], nil
}

// cached lets the API server answer a list from what it has at hand: a look
// that is a moment old does no harm, for the next one follows.
var cached = metav1.ListOptions{ResourceVersion: "0"}

// see lists all that the controllers care for. A cluster without any tenant
// namespace has nothing but what is listed first.
func (l *look) see(ctx context.Context) error {
	namespaces, err := l.client.CoreV1().Namespaces().List(ctx, cached)
	if err != nil {
		return err
	}
	l.namespaces = namespaces.Items
	var err1, err2 error
	l.offloadings, err1 = list[offloadingSpec, offloadingStatus](ctx, l.dynamic, offloadings, cached)
	l.foreigns, err2 = list[foreignSpec, foreignStatus](ctx, l.dynamic, foreigns, cached)
	if err := errors.Join(err1, err2); err != nil || !slices.ContainsFunc(l.namespaces, isTenantNamespace) {
		return err
	}
	return errors.Join(l.seeKubernetes(ctx), l.seeTenants(ctx), l.seeNetworks(ctx))
}

func (l *look) seeKubernetes(ctx context.Context) error {
	withLabel := func(selector string) metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: cached.ResourceVersion, LabelSelector: selector}
	}
	secrets, err1 := l.client.CoreV1().Secrets("").List(ctx, withLabel(identityType+"="+controlPlaneType))
	nodes, err2 := l.client.CoreV1().Nodes().List(ctx, withLabel(nodeType+"="+virtual))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	l.secrets, l.nodes = secrets.Items, nodes.Items
	return nil
}

func (l *look) seeTenants(ctx context.Context) error {
	var err1, err2, err3, err4, err5, err6 error
	l.tenants, err1 = list[tenantSpec, tenantStatus](ctx, l.dynamic, tenants, cached)
	l.slices, err2 = list[sliceSpec, sliceStatus](ctx, l.dynamic, resourceSlices, cached)
	l.identities, err3 = list[identitySpec, identityStatus](ctx, l.dynamic, identities, cached)
	l.virtualNodes, err4 = list[virtualNodeSpec, conditioned](ctx, l.dynamic, virtualNodes, cached)
	l.maps, err5 = list[mapSpec, mapStatus](ctx, l.dynamic, namespaceMaps, cached)
	l.quotas, err6 = list[quotaSpec, struct{}](ctx, l.dynamic, quotas, cached)
	return errors.Join(err1, err2, err3, err4, err5, err6)
}

// seeNetworks lists the objects of the other half.
func (l *look) seeNetworks(ctx context.Context) error {
	l.networks = map[schema.GroupVersionResource][]network{}
	for _, resource := range []schema.GroupVersionResource{configurations, gatewayServers, gatewayClients, connections} {
		found, err := list[struct{}, networkStatus](ctx, l.dynamic, resource, cached)
		if err != nil {
			return err
		}
		l.networks[resource] = found
	}
	return nil
}

// sum is that of all that was seen. A Connection says every few seconds that it
// is well: that is no change.
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

// namespace returns a namespace by its name, nil where there is none.
func (l *look) namespace(name string) *corev1.Namespace {
	for i := range l.namespaces {
		if l.namespaces[i].Name == name {
			return &l.namespaces[i]
		}
	}
	return nil
}

// tenantNamespaces returns those for a remote cluster. More than one is a
// mistake.
func (l *look) tenantNamespaces(id string) []string {
	var names []string
	for _, n := range l.namespaces {
		if isTenantNamespace(n) && n.Labels[remoteClusterID] == id {
			names = append(names, n.Name)
		}
	}
	return names
}

// remoteOf returns which cluster a namespace is the tenant namespace for, "" if
// it is none.
func (l *look) remoteOf(namespace string) string {
	n := l.namespace(namespace)
	if n == nil || !isTenantNamespace(*n) {
		return ""
	}
	return n.Labels[remoteClusterID]
}

// lost tells whether an admin has given up a remote cluster for good.
func (l *look) lost(id string) bool {
	return slices.ContainsFunc(l.foreigns, func(f foreign) bool { return f.Name == id && f.Annotations[unreachable] == yes })
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
