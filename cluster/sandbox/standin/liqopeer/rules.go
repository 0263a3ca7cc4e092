package liqopeer

import (
	"context"
	"errors"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// liqoGroup is the user group in client certificates from Liqo. It is the organization in the subject.
const liqoGroup = "liqo.io"

var onBoth = []registrationv1.OperationType{registrationv1.Create, registrationv1.Update}

// Rules of all webhooks except those for pods, ShadowPods, ForeignClusters, FirewallConfigurations and
// RouteConfigurations.
//
// Source: liqotech/liqo v1.2.0, deployments/liqo/templates/webhooks; the rules are in pkg/webhooks.
var (
	validatingHooks = map[string]hook{
		"tenant":              {authenticationGroup, "tenants", onBoth, judgeTenant, nil},
		"resourceslice":       {authenticationGroup, "resourceslices", onBoth, judgeSlice, nil},
		"namespaceoffloading": {offloadingGroup, "namespaceoffloadings", onBoth, judgeOffloading, nil},
	}
	mutatingHooks = map[string]hook{
		"tenant":      {authenticationGroup, "tenants", onBoth, nil, labelTenant},
		"virtualnode": {offloadingGroup, "virtualnodes", onBoth, judgeVirtualNode, completeVirtualNode},
	}
)

// judgeTenant validates a Tenant (pkg/webhooks/tenant/validate.go). The rules for creation also apply to updates, even
// if an update only removes a finalizer.
func judgeTenant(ctx context.Context, s *site, r *admissionv1.AdmissionRequest) error {
	t, err := decode[tenantSpec, tenantStatus](r.Object)
	if err != nil {
		return err
	}
	namespace, err := s.client.CoreV1().Namespaces().Get(ctx, r.Namespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	switch {
	case namespace.Labels[tenantNamespace] != yes:
		return deny(
			http.StatusBadRequest, `tenant must be in a tenant namespace: namespace %s has no label %s: "true"`, r.Namespace,
			tenantNamespace,
		)
	case t.Labels[remoteClusterID] != t.Spec.ClusterID:
		return deny(
			http.StatusBadRequest, "tenant label %s is %q and spec.clusterID is %q: they must be equal", remoteClusterID,
			t.Labels[remoteClusterID], t.Spec.ClusterID,
		)
	case namespace.Labels[remoteClusterID] != t.Spec.ClusterID:
		return deny(
			http.StatusForbidden, "tenant of cluster %q cannot be in namespace %s, which is for cluster %q", t.Spec.ClusterID,
			r.Namespace, namespace.Labels[remoteClusterID],
		)
	}
	if r.Operation != admissionv1.Create {
		return nil
	}
	all, err := listNow[tenantSpec, tenantStatus](ctx, s, tenants)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.Namespace == r.Namespace {
			return deny(http.StatusForbidden, "tenant already exists in namespace %s: it is called %s", r.Namespace, other.Name)
		}
		if other.Name == t.Name {
			return deny(
				http.StatusForbidden, "tenant with name %s already exists in namespace %s: the name must be unique in the cluster",
				t.Name, other.Namespace,
			)
		}
	}
	return nil
}

// judgeSlice validates a ResourceSlice (pkg/webhooks/resourceslice/validate.go). The rule for creation does not apply
// to replicated copies. The rule for updates applies only to users from another cluster.
func judgeSlice(ctx context.Context, s *site, r *admissionv1.AdmissionRequest) error {
	now, err := decode[sliceSpec, sliceStatus](r.Object)
	if err != nil {
		return err
	}
	if r.Operation == admissionv1.Update {
		was, err := decode[sliceSpec, sliceStatus](r.OldObject)
		if err != nil || !slices.Contains(r.UserInfo.Groups, liqoGroup) {
			return err
		}
		if was.Labels[remoteClusterID] != now.Labels[remoteClusterID] || was.Annotations[cordon] != now.Annotations[cordon] {
			return deny(
				http.StatusForbidden, "resourceslice label %s and annotation %s can be changed only by the provider",
				remoteClusterID,
				cordon,
			)
		}
		return nil
	}
	if now.Labels[replicated] == yes {
		return nil
	}
	all, err := listNow[sliceSpec, sliceStatus](ctx, s, resourceSlices)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.Name == now.Name && other.Labels[replication] == yes {
			return deny(
				http.StatusForbidden,
				"resourceslice with name %s already exists in namespace %s: the name must be unique in the cluster", now.Name,
				other.Namespace,
			)
		}
	}
	return nil
}

// judgeOffloading validates a NamespaceOffloading (pkg/webhooks/namespaceoffloading/nsoff.go).
func judgeOffloading(_ context.Context, _ *site, r *admissionv1.AdmissionRequest) error {
	now, err1 := decode[offloadingSpec, offloadingStatus](r.Object)
	was, err2 := decode[offloadingSpec, offloadingStatus](r.OldObject)
	if err1 != nil || err2 != nil {
		return apierrors.NewBadRequest("the object is not a NamespaceOffloading")
	}
	switch {
	case now.Name != offloadingName:
		return deny(http.StatusForbidden, "namespaceoffloading must be called %q, not %q", offloadingName, now.Name)
	case now.Spec.NamespaceMappingStrategy == "SelectedName" && now.Spec.RemoteNamespaceName == "":
		return deny(http.StatusForbidden, "namespaceoffloading with strategy SelectedName needs spec.remoteNamespaceName")
	case r.Operation != admissionv1.Update:
		return nil
	case was.Spec.NamespaceMappingStrategy != now.Spec.NamespaceMappingStrategy:
		return deny(
			http.StatusForbidden, "namespaceoffloading spec.namespaceMappingStrategy cannot be changed: delete it first",
		)
	case was.Spec.RemoteNamespaceName != now.Spec.RemoteNamespaceName:
		return deny(http.StatusForbidden, "namespaceoffloading spec.remoteNamespaceName cannot be changed: delete it first")
	}
	return nil
}

// judgeVirtualNode validates a VirtualNode (pkg/webhooks/virtualnode/virtualnode.go, Handle). It checks the node only
// on creation.
func judgeVirtualNode(ctx context.Context, s *site, r *admissionv1.AdmissionRequest) error {
	n, err := decode[virtualNodeSpec, conditioned](r.Object)
	if err != nil || r.Operation != admissionv1.Create {
		return err
	}
	_, err = s.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return deny(http.StatusForbidden, "virtualnode cannot be named %s: a node with that name exists", n.Name)
}

// completeVirtualNode sets the defaults of a VirtualNode, like mutateSpec and mutateSpecInTemplate in
// pkg/webhooks/virtualnode/mutate.go (the same in v1.0.0). The defaults are the chart's (deployments/liqo/values.yaml,
// offloading). Upstream sets them only on creation, but reads them on every write. An update without a default
// therefore panics.
func completeVirtualNode(r *admissionv1.AdmissionRequest) ([]map[string]any, error) {
	n, err := decode[virtualNodeSpec, conditioned](r.Object)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Spec.CreateNode != nil && n.Spec.DisableNetworkCheck != nil:
		return nil, nil
	case r.Operation != admissionv1.Create:
		return nil, errPanic
	}
	var out []map[string]any
	if n.Spec.CreateNode == nil {
		out = append(out, map[string]any{"op": "add", "path": "/spec/createNode", "value": true})
	}
	if n.Spec.DisableNetworkCheck == nil {
		out = append(out, map[string]any{"op": "add", "path": "/spec/disableNetworkCheck", "value": false})
	}
	return out, nil
}

// errPanic is the error from controller-runtime when a webhook panics (kubernetes-sigs/controller-runtime,
// pkg/webhook/admission/webhook.go).
var errPanic = errors.New("panic: runtime error: invalid memory address or nil pointer dereference [recovered]")

// labelTenant adds the remote cluster's label to a Tenant without one (pkg/webhooks/tenant/mutate.go).
func labelTenant(r *admissionv1.AdmissionRequest) ([]map[string]any, error) {
	t, err := decode[tenantSpec, tenantStatus](r.Object)
	if err != nil || t.Spec.ClusterID == "" || t.Labels[remoteClusterID] != "" {
		return nil, err
	}
	labels := map[string]string{remoteClusterID: t.Spec.ClusterID}
	for key, value := range t.Labels {
		labels[key] = value
	}
	return []map[string]any{{"op": "add", "path": "/metadata/labels", "value": labels}}, nil
}
