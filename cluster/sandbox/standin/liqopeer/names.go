package liqopeer

import "k8s.io/apimachinery/pkg/runtime/schema"

const (
	home     = "liqo" // Liqo's own namespace
	standIn  = "carrick/stand-in"
	markText = "created by the sandbox instead of Liqo's controllers"
)

// Labels and annotations in Liqo (liqotech/liqo v1.2.0, pkg/consts).
const (
	remoteClusterID    = "liqo.io/remote-cluster-id"
	tenantNamespace    = "liqo.io/tenant-namespace"
	replication        = "liqo.io/replication"
	destination        = "liqo.io/remoteID"
	origin             = "liqo.io/originID"
	replicated         = "liqo.io/replicated"
	identityType       = "liqo.io/identity-type"
	remoteTenant       = "liqo.io/remote-tenant-namespace"
	createVirtualNode  = "liqo.io/create-virtual-node"
	cordon             = "liqo.io/cordon"
	cordonTenant       = "liqo.io/cordon-tenant"
	nodeType           = "liqo.io/type"
	virtual            = "virtual-node"
	schedulingEnabled  = "liqo.io/scheduling-enabled"
	managedBy          = "liqo.io/managed-by-namespace-map"
	originalName       = "liqo.io/original-name"
	unreachable        = "liqo.io/foreign-cluster-permanently-unreachable"
	resourceSliceName  = "liqo.io/resourceslice-name"
	yes                = "true"
	controlPlaneType   = "ControlPlane"
	resourceSliceType  = "ResourceSlice"
	notAllowed         = "virtual-node.liqo.io/not-allowed"
	remoteControlPlane = "remote-controlplane"
	kubeletClusterWide = "virtual-kubelet-remote-clusterwide"
	kubeletRole        = "liqo-virtual-kubelet-remote"
	nodeDown           = "LiqoNetworkingDown"
	controllerManager  = "liqo-controller-manager"
	crdReplicator      = "liqo-crd-replicator"
	authenticationKeys = "authentication-keys"
	nameLabel          = "app.kubernetes.io/name"
	clusterIDConfigMap = "clusterid-configmap"
	clusterIDKey       = "CLUSTER_ID"
	restartedAt        = "kubectl.kubernetes.io/restartedAt"
	managed            = "liqo.io/managed"          // on all objects that Liqo creates (globalLabels in the chart)
	remoteCertificate  = "liqo-remote-certificate-" // prefix of a Secret name; the slice name follows
	offloadingName     = "offloading"               // the only valid name of a NamespaceOffloading
)

// Finalizers in Liqo.
const (
	tenantFinalizer      = "tenant.liqo.io/finalizer"
	operatorFinalizer    = "crdreplicator.liqo.io/operator"
	resourceFinalizer    = "crdreplicator.liqo.io/resource"
	virtualNodeFinalizer = "virtualnode-controller.liqo.io/finalizer"
	mapFinalizer         = "namespacemap-controller.liqo.io/finalizer"
	offloadingFinalizer  = "namespaceoffloading-controller.liqo.io/finalizer"
	checkerFinalizer     = "api-server-checker.liqo.io/finalizer"
)

const (
	authenticationGroup = "authentication.liqo.io"
	offloadingGroup     = "offloading.liqo.io"
	coreGroup           = "core.liqo.io"
	networkingGroup     = "networking.liqo.io"
	version             = "v1beta1"
)

var (
	tenants         = liqoResource(authenticationGroup, "tenants")
	resourceSlices  = liqoResource(authenticationGroup, "resourceslices")
	identities      = liqoResource(authenticationGroup, "identities")
	renews          = liqoResource(authenticationGroup, "renews")
	virtualNodes    = liqoResource(offloadingGroup, "virtualnodes")
	offloadings     = liqoResource(offloadingGroup, "namespaceoffloadings")
	namespaceMaps   = liqoResource(offloadingGroup, "namespacemaps")
	quotas          = liqoResource(offloadingGroup, "quotas")
	foreigns        = liqoResource(coreGroup, "foreignclusters")
	configurations  = liqoResource(networkingGroup, "configurations")
	gatewayServers  = liqoResource(networkingGroup, "gatewayservers")
	gatewayClients  = liqoResource(networkingGroup, "gatewayclients")
	connections     = liqoResource(networkingGroup, "connections")
	kubeSecrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	kubeNamespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	kubeConfigMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	kubeNodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	kubeDeployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	kubeRequests    = schema.GroupVersionResource{
		Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests",
	}
	replicatedAll = []schema.GroupVersionResource{resourceSlices, namespaceMaps, renews}
)

func liqoResource(group, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}
