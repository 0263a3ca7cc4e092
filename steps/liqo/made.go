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
	"carrick/steps"
	"carrick/steps/check"
)

// madeByLiqo are the kinds that Liqo's controllers make in a tenant namespace, and
// take away when the peering is taken back. is tells its own from those of admins;
// nil: all are its own.
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
	{"ResourceSlice", resourceSlices, func(o metav1.PartialObjectMetadata) bool { return o.Labels[replicatedLabel] == "true" }},
	{"VirtualNode", virtualNodes, nil},
	{"NamespaceMap", namespaceMaps, nil},
	{"Quota", quotas, nil},
	{"RoleBinding", check.RoleBindings, func(o metav1.PartialObjectMetadata) bool {
		return strings.HasPrefix(o.Name, "liqo-binding-") && o.Name != usualBinding
	}},
	{"Secret", secrets, func(o metav1.PartialObjectMetadata) bool {
		return strings.HasPrefix(o.Name, "kubeconfig-resourceslice-")
	}},
}

// madeIn are the objects of a namespace that Liqo made, but for those that belong
// to another object and go with it.
func madeIn(ctx context.Context, e steps.Env, namespace string) ([]child, error) {
	var mu sync.Mutex
	var out []child
	var looks []func() error
	for _, k := range madeByLiqo {
		looks = append(looks, func() error {
			found, err := e.Cluster.Find(ctx, k.gvr, namespace, cluster.Selector{})
			if errors.Is(err, cluster.ErrNotServed) || apierrors.IsForbidden(err) {
				return nil // what may not be seen is somebody's: the namespace stays
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
	slices.SortFunc(out, func(a, b child) int { return strings.Compare(a.String(), b.String()) })
	return out, err
}

// ownSpaces are the tenant namespaces that this link made on the env's side; one
// that it only uses stays, with all that is in it.
func ownSpaces(ctx context.Context, e steps.Env) ([]steps.Made, error) {
	found, err := e.Made(ctx, check.Namespaces, e.SideName()+"-namespace")
	return slices.DeleteFunc(found, func(o steps.Made) bool { return !o.Created }), err
}

// along forecasts what Liqo takes away by itself once the peering is taken back,
// so that a tenant namespace that holds nothing else can be planned to go.
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
		for _, c := range made {
			out = append(out, c.String())
		}
	}
	return map[steps.Side][]string{e.Side: out}, nil
}

// cleaned waits until Liqo has taken away what it made in the link's tenant
// namespaces. What is still there after a while is an error that names it.
func cleaned(ctx context.Context, e steps.Env, say steps.Progress) error {
	spaces, err := ownSpaces(ctx, e)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, vanishWithin)
	defer cancel()
	for _, ns := range spaces {
		made, err := madeIn(ctx, e, ns.Name)
		if err != nil {
			return err
		}
		for _, c := range made {
			say.Say("waiting until Liqo has taken %s away", c)
			if err := e.Cluster.Gone(within, c.gvr, c.namespace, c.name, c.uid); err != nil {
				return fmt.Errorf("%s was not taken away by Liqo: %w", c, err)
			}
		}
	}
	return nil
}
