package liqo

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/steps"
)

// These are Liqo's resources in the API versions of Liqo 1.x. Commands in fixes use the full names, because Kubernetes
// has its own resource named resourceslices.
var (
	configurations       = liqoResource("networking", "v1beta1", "configurations")
	connections          = liqoResource("networking", "v1beta1", "connections")
	gatewayClients       = liqoResource("networking", "v1beta1", "gatewayclients")
	gatewayServers       = liqoResource("networking", "v1beta1", "gatewayservers")
	publicKeys           = liqoResource("networking", "v1beta1", "publickeies")
	clientTemplates      = liqoResource("networking", "v1beta1", "wggatewayclienttemplates")
	serverTemplates      = liqoResource("networking", "v1beta1", "wggatewayservertemplates")
	networks             = liqoResource("ipam", "v1alpha1", "networks")
	identities           = liqoResource("authentication", "v1beta1", "identities")
	resourceSlices       = liqoResource("authentication", "v1beta1", "resourceslices")
	tenants              = liqoResource("authentication", "v1beta1", "tenants")
	foreignClusters      = liqoResource("core", "v1beta1", "foreignclusters")
	namespaceMaps        = liqoResource("offloading", "v1beta1", "namespacemaps")
	namespaceOffloadings = liqoResource("offloading", "v1beta1", "namespaceoffloadings")
	quotas               = liqoResource("offloading", "v1beta1", "quotas")
	shadowPods           = liqoResource("offloading", "v1beta1", "shadowpods")
	virtualNodes         = liqoResource("offloading", "v1beta1", "virtualnodes")
)

func liqoResource(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group + ".liqo.io", Version: version, Resource: resource}
}

// These are Liqo's labels and annotations, and some of their values (liqotech/liqo: pkg/consts).
const (
	remoteIDLabel    = "liqo.io/remote-cluster-id"
	tenantLabel      = "liqo.io/tenant-namespace"
	gatewayLabel     = "networking.liqo.io/gateway-resource"
	identityLabel    = "liqo.io/identity-type"
	replicationLabel = "liqo.io/replication"
	destinationLabel = "liqo.io/remoteID"
	originLabel      = "liqo.io/originID"
	replicatedLabel  = "liqo.io/replicated"
	networkTypeLabel = "ipam.liqo.io/network-type"
	remoteSpaceNote  = "liqo.io/remote-tenant-namespace"
	virtualNodeNote  = "liqo.io/create-virtual-node"
	unreachableNote  = "liqo.io/foreign-cluster-permanently-unreachable"
	nodeTypeLabel    = "liqo.io/type"
	virtualNodeLabel = "liqo.io/virtual-node"
	virtualNodeType  = "virtual-node"
	creatorLabel     = "liqo.io/creator-user"
	podOriginLabel   = "offloading.liqo.io/origin"
	scheduledLabel   = "liqo.io/scheduling-enabled"
	remoteSpaceOwner = "liqo.io/managed-by-namespace-map"
	virtualNodeTaint = "virtual-node.liqo.io/not-allowed"
	controlPlaneType = "ControlPlane"
)

// living lists the objects that match the label selector and are not being deleted. It returns none if the API server
// does not serve the resource.
func living(
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource, namespace, labels string,
) ([]*unstructured.Unstructured, error) {
	found, err := e.Cluster.List(ctx, gvr, namespace, cluster.Selector{Labels: labels})
	if errors.Is(err, failure.ErrNotServed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(
		slices.Clone(found), func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil },
	), nil
}

func text(o *unstructured.Unstructured, fields ...string) string {
	v, _, _ := unstructured.NestedString(o.Object, fields...)
	return v
}

func intAt(o *unstructured.Unstructured, fields ...string) int {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, fields...)
	switch n := v.(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

func stringsAt(o *unstructured.Unstructured, fields ...string) []string {
	v, _, _ := unstructured.NestedStringSlice(o.Object, fields...)
	return v
}

func names(objs []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objs {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return out
}
