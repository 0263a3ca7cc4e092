package liqo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// madeByLiqo lists the kinds of objects that Liqo's controllers create in a tenant namespace and delete with the
// peering. byLiqo reports whether Liqo created a given object. If byLiqo is nil, Liqo created all objects of the kind.
var madeByLiqo = []struct {
	kind   string
	gvr    schema.GroupVersionResource
	byLiqo func(metav1.PartialObjectMetadata) bool
}{
	{"Connection", connections, nil},
	{"Network", networks, nil},
	{"IP", liqoResource("ipam", "v1alpha1", "ips"), nil},
	{"FirewallConfiguration", liqoResource("networking", "v1beta1", "firewallconfigurations"), nil},
	{"RouteConfiguration", liqoResource("networking", "v1beta1", "routeconfigurations"), nil},
	{"InternalFabric", liqoResource("networking", "v1beta1", "internalfabrics"), nil},
	{"GeneveTunnel", liqoResource("networking", "v1beta1", "genevetunnels"), nil},
	{"WgGatewayServer", liqoResource("networking", "v1beta1", "wggatewayservers"), nil},
	{"WgGatewayClient", liqoResource("networking", "v1beta1", "wggatewayclients"), nil},
	{"Identity", identities, nil},
	{"Renew", liqoResource("authentication", "v1beta1", "renews"), nil},
	{
		"ResourceSlice", resourceSlices,
		func(o metav1.PartialObjectMetadata) bool { return o.Labels[replicatedLabel] == "true" },
	},
	{"VirtualNode", virtualNodes, nil},
	{"NamespaceMap", namespaceMaps, nil},
	{"Quota", quotas, nil},
	{"RoleBinding", check.RoleBindings, func(o metav1.PartialObjectMetadata) bool {
		return strings.HasPrefix(o.Name, "liqo-binding-") && o.Name != usualBinding
	}},
	{"Secret", check.Secrets, func(o metav1.PartialObjectMetadata) bool {
		return strings.HasPrefix(o.Name, "kubeconfig-resourceslice-")
	}},
	{"Deployment", check.Deployments, func(o metav1.PartialObjectMetadata) bool {
		return o.Name == kubeletPrefix+o.Labels[virtualNodeLabel]
	}},
}

// kubeletPrefix is the prefix of the name of a virtual kubelet's Deployment.
//
// Source: liqotech/liqo pkg/vkMachinery/forge/creation.go (VirtualKubeletName), 557c199cf.
const kubeletPrefix = "vk-"

// signedCertificate is the name of the Secret in which the provider's Liqo stores the certificate that it signed for a
// consumer. For a slice, the name ends in -SLICE. Liqo never deletes the Secret. While the Secret exists, Liqo denies
// every other certificate request from the same consumer or slice.
//
// Source: liqotech/liqo pkg/identityManager/certificateIdentityProvider.go (storeRemoteCertificate,
// GetRemoteCertificate), 557c199cf.
const signedCertificate = "liqo-remote-certificate"

// signedFor returns the Secrets in namespace with the certificates that Liqo signed for the consumer.
func signedFor(ctx context.Context, e steps.Env, namespace, consumerID string) ([]child, error) {
	found, err := e.Cluster.Find(
		ctx, check.Secrets, namespace, cluster.Selector{Labels: remoteIDLabel + "=" + consumerID},
	)
	if apierrors.IsForbidden(err) {
		return nil, nil // if Secrets cannot be listed, undo keeps the namespace
	}
	var out []child
	for _, o := range found {
		if o.Name == signedCertificate || strings.HasPrefix(o.Name, signedCertificate+"-") {
			out = append(out, child{check.Secrets, "Secret", o.Namespace, o.Name, o.UID})
		}
	}
	return out, err
}

// madeIn returns the objects that Liqo created in a namespace. It omits the objects that Kubernetes garbage-collects
// with their owner.
func madeIn(ctx context.Context, e steps.Env, namespace string) ([]child, error) {
	var mu sync.Mutex
	var out []child
	var looks []func() error
	for _, k := range madeByLiqo {
		looks = append(looks, func() error {
			found, err := e.Cluster.Find(ctx, k.gvr, namespace, cluster.Selector{})
			if errors.Is(err, failure.ErrNotServed) || apierrors.IsForbidden(err) {
				return nil // if a kind cannot be listed, undo keeps the namespace
			}
			mu.Lock()
			defer mu.Unlock()
			for _, o := range found {
				if k.byLiqo == nil || k.byLiqo(o) {
					out = append(out, child{k.gvr, k.kind, o.Namespace, o.Name, o.UID})
				}
			}
			return err
		})
	}
	err := check.Together(looks...)
	if err == nil {
		out, err = withAccounts(ctx, e, namespace, out)
	}
	slices.SortFunc(out, func(a, b child) int { return strings.Compare(a.String(), b.String()) })
	return out, err
}

// withAccounts adds the ServiceAccounts of virtual kubelets to made. A virtual kubelet's ServiceAccount has the name of
// its VirtualNode. No label distinguishes it from other ServiceAccounts.
//
// Source: liqotech/liqo pkg/vkMachinery/forge/creation.go (VirtualKubeletServiceAccount), 557c199cf.
func withAccounts(ctx context.Context, e steps.Env, namespace string, made []child) ([]child, error) {
	if !slices.ContainsFunc(made, func(c child) bool { return c.gvr == virtualNodes }) {
		return made, nil
	}
	found, err := e.Cluster.Find(ctx, check.ServiceAccounts, namespace, cluster.Selector{})
	if apierrors.IsForbidden(err) {
		return made, nil
	}
	out := slices.Clone(made)
	for _, o := range found {
		if slices.ContainsFunc(made, func(c child) bool { return c.gvr == virtualNodes && c.name == o.Name }) {
			out = append(out, child{check.ServiceAccounts, "ServiceAccount", o.Namespace, o.Name, o.UID})
		}
	}
	return out, err
}

// ownSpaces returns the tenant namespaces that this link created on this side. It omits tenant namespaces that the link
// uses but did not create, because undo keeps them and all their objects.
func ownSpaces(ctx context.Context, e steps.Env) ([]inventory.Made, error) {
	found, err := inventory.MadeBy(ctx, e, check.Namespaces, e.SideName()+"-namespace")
	return slices.DeleteFunc(found, func(o inventory.Made) bool { return !o.Created }), err
}

// along returns the objects that an undo of the peering also removes from this link's tenant namespaces: the objects
// that Liqo deletes, and the Secrets with signed certificates. If a tenant namespace contains nothing else, undo can
// delete it.
func along(ctx context.Context, e steps.Env) (map[steps.Side][]string, error) {
	spaces, err := ownSpaces(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ns := range spaces {
		made, err := madeIn(ctx, e, ns.Name)
		if err != nil {
			return nil, err
		}
		signed, err := signedFor(ctx, e, ns.Name, ns.Labels[remoteIDLabel])
		if err != nil {
			return nil, err
		}
		for _, c := range append(made, signed...) {
			out = append(out, c.String())
		}
	}
	return map[steps.Side][]string{e.Side: out}, nil
}

// cleaned waits until Liqo has deleted the objects that it created in the link's tenant namespaces. After a timeout,
// the error names an object that still exists.
func cleaned(ctx context.Context, e steps.Env, say steps.Progress) error {
	spaces, err := ownSpaces(ctx, e)
	if err != nil {
		return err
	}
	for _, ns := range spaces {
		made, err := madeIn(ctx, e, ns.Name)
		if err != nil {
			return err
		}
		for _, c := range made {
			say.Say("waiting for Liqo to delete %s", c)
			if err := e.Cluster.Gone(ctx, c.gvr, c.namespace, c.name, c.uid); err != nil {
				err, _ = explainHeld(e, fmt.Errorf("%s was not deleted by Liqo: %w", c, err))
				return err
			}
		}
	}
	return nil
}
