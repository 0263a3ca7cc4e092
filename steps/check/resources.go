package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
)

// The resources that guides read.
var (
	APIServices = schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices",
	}
	ClusterRoleBindings = schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings",
	}
	ClusterRoles = schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles",
	}
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	CRDs       = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	CSINodes         = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}
	DaemonSets       = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	Deployments      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	EndpointSlices   = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
	Events           = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	IngressClasses   = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"}
	Ingresses        = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	Jobs             = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	LimitRanges      = schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}
	MutatingWebhooks = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations",
	}
	ValidatingWebhooks = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
	}
	Namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	NetworkPolicies = schema.GroupVersionResource{
		Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies",
	}
	Nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Pods            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	PriorityClasses = schema.GroupVersionResource{
		Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses",
	}
	ResourceQuotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	RoleBindings   = schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings",
	}
	Roles           = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	Secrets         = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	ServiceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	Services        = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	SigningRequests = schema.GroupVersionResource{
		Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests",
	}
	StorageClasses     = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	ValidatingBindings = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings",
	}
	ValidatingPolicies = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
	}
	VolumeClaims = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// Serves reports whether the API server serves a resource in the given version.
func Serves(ctx context.Context, c *cluster.Cluster, gvr schema.GroupVersionResource) (bool, error) {
	kinds, err := c.Served(ctx)
	return slices.ContainsFunc(kinds, func(k cluster.Kind) bool { return k.GVR == gvr }), err
}

// ServesFact returns the Learn function of a fact. The fact is true if the API server of a side serves the resource.
func ServesFact(gvr schema.GroupVersionResource) func(context.Context, steps.Env) (any, error) {
	return func(ctx context.Context, e steps.Env) (any, error) { return Serves(ctx, e.Cluster, gvr) }
}

// As converts a live object to T. The fields of T need json tags, because a field without a tag stays empty. The object
// itself is shared and must not be modified.
func As[T any](obj *unstructured.Unstructured) (*T, error) {
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &out); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return &out, nil
}

// Get is a typed live read of one object.
func Get[T any](
	ctx context.Context, c *cluster.Cluster, gvr schema.GroupVersionResource, namespace, name string,
) (*T, error) {
	obj, err := c.Get(ctx, gvr, namespace, name)
	if err != nil {
		return nil, err
	}
	return As[T](obj)
}

// List is a typed live read of several objects, sorted by name.
func List[T any](
	ctx context.Context, c *cluster.Cluster, gvr schema.GroupVersionResource, namespace string, s cluster.Selector,
) ([]*T, error) {
	objs, err := c.List(ctx, gvr, namespace, s)
	if err != nil {
		return nil, err
	}
	objs = slices.Clone(objs) // the list is shared
	slices.SortFunc(objs, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	out := make([]*T, 0, len(objs))
	for _, o := range objs {
		t, err := As[T](o)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
