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

// madeByLiqo are the kinds that Liqo's controllers create in a tenant namespace and delete with the
// peering. is distinguishes Liqo's objects from those of admins. nil means that all are Liqo's.
var madeByLiqo = []struct {
	kind string
	gvr  schema.GroupVersionResource
	is   func(metav1.PartialObjectMetadata) bool
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

// signedCertificate is the name of the Secret in which the provider's Liqo stores the certificate
// that it signed for a consumer. For a slice, a dash and the slice's name are appended. Liqo never
// deletes the Secret, and from then on denies every other request with that name.
//
// Source: liqotech/liqo pkg/identityManager/certificateIdentityProvider.go
// (storeRemoteCertificate, GetRemoteCertificate), 557c199cf.
const signedCertificate = "liqo-remote-certificate"

// signedFor returns the Secrets with certificates that Liqo signed for the consumer of a tenant
// namespace.
func signedFor(ctx context.Context, e steps.Env, namespace, consumerID string) ([]child, error) {
	found, err := e.Cluster.Find(
		ctx, check.Secrets, namespace, cluster.Selector{Labels: remoteIDLabel + "=" + consumerID},
	)
	if apierrors.IsForbidden(err) {
		return nil, nil // the namespace is kept with objects that cannot be listed
	}
	var out []child
	for _, o := range found {
		if o.Name == signedCertificate || strings.HasPrefix(o.Name, signedCertificate+"-") {
			out = append(out, child{check.Secrets, "Secret", o.Namespace, o.Name, o.UID})
		}
	}
	return out, err
}

// madeIn returns the objects of a namespace that Liqo created, except those that are
// garbage-collected with their owner.
func madeIn(ctx context.Context, e steps.Env, namespace string) ([]child, error) {
	var mu sync.Mutex
	var out []child
	var looks []func() error
	for _, k := range madeByLiqo {
		looks = append(looks, func() error {
			found, err := e.Cluster.Find(ctx, k.gvr, namespace, cluster.Selector{})
			if errors.Is(err, failure.ErrNotServed) || apierrors.IsForbidden(err) {
				return nil // objects that cannot be listed may belong to others: the namespace is kept
			}
			mu.Lock()
			defer mu.Unlock()
			for _, o := range found {
				if k.is == nil || k.is(o) {
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

// withAccounts adds the ServiceAccounts of virtual kubelets, which have the name of their node.
// No label distinguishes them from others.
//
// Source: liqotech/liqo pkg/vkMachinery/forge/creation.go (VirtualKubeletServiceAccount),
// 557c199cf.
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

// ownSpaces returns the tenant namespaces that this link created on the env's side. A namespace
// that the link only uses is kept with all its objects.
func ownSpaces(ctx context.Context, e steps.Env) ([]inventory.Made, error) {
	found, err := inventory.MadeBy(ctx, e, check.Namespaces, e.SideName()+"-namespace")
	return slices.DeleteFunc(found, func(o inventory.Made) bool { return !o.Created }), err
}

// along predicts which objects Liqo deletes automatically when the peering is undone, and which
// certificates it keeps, so that the plan can delete a tenant namespace that contains nothing
// else.
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

// cleaned waits until Liqo has deleted the objects that it created in the link's tenant
// namespaces. If it times out, the error names the remaining objects.
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
