package liqopeer

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object contains the fields of a custom resource that this fake reads or writes.
type object[S, T any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              S `json:"spec"`
	Status            T `json:"status,omitempty"`
}

// Custom resources. All are v1beta1 (liqotech/liqo v1.2.0, apis).
type (
	tenant      = object[tenantSpec, tenantStatus]
	slice       = object[sliceSpec, sliceStatus]
	identity    = object[identitySpec, identityStatus]
	virtualNode = object[virtualNodeSpec, conditioned]
	nsMap       = object[mapSpec, mapStatus]
	offloading  = object[offloadingSpec, offloadingStatus]
	quota       = object[quotaSpec, struct{}]
	foreign     = object[foreignSpec, foreignStatus]
	network     = object[struct{}, networkStatus] // Configuration, Connection, GatewayServer or GatewayClient
)

// condition is Liqo's own type of condition. Its status is not True or False. The valid values depend on its type.
type condition struct {
	Type               string      `json:"type"`
	Status             string      `json:"status"`
	Reason             string      `json:"reason,omitempty"`
	Message            string      `json:"message,omitempty"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

type conditioned struct {
	Conditions []condition `json:"conditions,omitempty"`
}

type tenantSpec struct {
	ClusterID       string `json:"clusterID,omitempty"`
	AuthzPolicy     string `json:"authzPolicy,omitempty"`
	TenantCondition string `json:"tenantCondition,omitempty"`
}

type tenantStatus struct {
	TenantNamespace string `json:"tenantNamespace,omitempty"`
}

type sliceSpec struct {
	Class             string              `json:"class,omitempty"`
	ConsumerClusterID string              `json:"consumerClusterID,omitempty"`
	ProviderClusterID string              `json:"providerClusterID,omitempty"`
	CSR               []byte              `json:"csr,omitempty"` // PEM
	Resources         corev1.ResourceList `json:"resources,omitempty"`
}

type sliceStatus struct {
	Conditions []condition         `json:"conditions,omitempty"`
	AuthParams *authParams         `json:"authParams,omitempty"`
	Resources  corev1.ResourceList `json:"resources,omitempty"`
}

// authParams contains the consumer's credentials. Certificates are PEM-encoded.
type authParams struct {
	APIServer string `json:"apiServer,omitempty"`
	CA        []byte `json:"ca,omitempty"`
	SignedCRT []byte `json:"signedCRT,omitempty"`
}

type identitySpec struct {
	ClusterID  string      `json:"clusterID,omitempty"`
	Namespace  string      `json:"namespace,omitempty"` // tenant namespace on the provider
	Type       string      `json:"type,omitempty"`
	AuthParams *authParams `json:"authParams,omitempty"`
}

type identityStatus struct {
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
}

type virtualNodeSpec struct {
	ClusterID           string                       `json:"clusterID,omitempty"`
	CreateNode          *bool                        `json:"createNode,omitempty"`
	DisableNetworkCheck *bool                        `json:"disableNetworkCheck,omitempty"`
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
	Labels              map[string]string            `json:"labels,omitempty"`
	ResourceQuota       corev1.ResourceQuotaSpec     `json:"resourceQuota,omitempty"`
}

type mapSpec struct {
	DesiredMapping map[string]string `json:"desiredMapping,omitempty"`
}

type mapStatus struct {
	CurrentMapping map[string]mapping `json:"currentMapping,omitempty"`
}

type mapping struct {
	RemoteNamespace string `json:"remoteNamespace,omitempty"`
	Phase           string `json:"phase,omitempty"`
}

type offloadingSpec struct {
	NamespaceMappingStrategy string              `json:"namespaceMappingStrategy,omitempty"`
	PodOffloadingStrategy    string              `json:"podOffloadingStrategy,omitempty"`
	RemoteNamespaceName      string              `json:"remoteNamespaceName,omitempty"`
	ClusterSelector          corev1.NodeSelector `json:"clusterSelector,omitempty"`
}

type offloadingStatus struct {
	ObservedGeneration  int64                  `json:"observedGeneration,omitempty"`
	OffloadingPhase     string                 `json:"offloadingPhase,omitempty"`
	RemoteNamespaceName string                 `json:"remoteNamespaceName,omitempty"`
	Conditions          map[string][]condition `json:"remoteNamespacesConditions,omitempty"` // by cluster ID
}

type quotaSpec struct {
	User              string              `json:"user"`
	LimitsEnforcement string              `json:"limitsEnforcement,omitempty"`
	Resources         corev1.ResourceList `json:"resources"`
	Cordoned          *bool               `json:"cordoned,omitempty"`
}

type foreignSpec struct {
	ClusterID string `json:"clusterID"`
}

type foreignStatus struct {
	Role            string           `json:"role"`
	APIServerURL    string           `json:"apiServerUrl,omitempty"`
	TenantNamespace foreignNamespace `json:"tenantNamespace"`
	Conditions      []condition      `json:"conditions,omitempty"`
	Modules         modules          `json:"modules"`
}

type foreignNamespace struct {
	Local  string `json:"local,omitempty"`
	Remote string `json:"remote,omitempty"`
}

type modules struct {
	Networking     module `json:"networking"`
	Authentication module `json:"authentication"`
	Offloading     module `json:"offloading"`
}

type module struct {
	Enabled    bool        `json:"enabled"`
	Conditions []condition `json:"conditions,omitempty"`
}

// networkStatus contains the status fields of package liqonet's objects that this package reads.
type networkStatus struct {
	Value string `json:"value,omitempty"` // status of a Connection
}

// with adds c to the conditions, or replaces the condition of the same type. The transition time changes only if the
// status or the reason changes.
func with(conditions []condition, c condition) []condition {
	c.LastTransitionTime = metav1.Now().Rfc3339Copy()
	all := append([]condition(nil), conditions...)
	for i, was := range all {
		if was.Type != c.Type {
			continue
		}
		if was.Status == c.Status && was.Reason == c.Reason {
			c.LastTransitionTime = was.LastTransitionTime
		}
		all[i] = c
		return all
	}
	return append(all, c)
}

// says returns the status of the condition with type kind, or "".
func says(conditions []condition, kind string) string {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}
