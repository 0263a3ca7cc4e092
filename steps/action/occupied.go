package action

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/inventory"
)

// automaticObjects lists the resources that Kubernetes creates in every namespace.
var automaticObjects = []string{
	"events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "leases.coordination.k8s.io",
	"pods.metrics.k8s.io",
}

// metricsAPI serves only measurements, so it can be ignored if it can't be listed.
const metricsAPI = "metrics.k8s.io/v1beta1"

// tenants lists the objects in a namespace that do not belong to this link and are not automatic. A kind that can't be
// listed counts as an object, because a namespace that can't be fully inspected must not be deleted.
func tenants(ctx context.Context, env steps.Env, namespace string) ([]string, error) {
	kinds, err := env.Cluster.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	silent, err := env.Cluster.Silent(ctx)
	if err != nil {
		return nil, err
	}
	type held struct {
		kind   string
		object metav1.PartialObjectMetadata
	}
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return nil, err
	}
	var out []string
	var all []held
	here := map[types.UID]bool{}
	for _, gv := range silent {
		if gv != metricsAPI {
			out = append(out, "objects of "+gv+" (its API does not answer)")
		}
	}
	for _, k := range kinds {
		name := k.GVR.GroupResource().String()
		if !k.Namespaced || !slices.Contains(k.Verbs, "list") || slices.Contains(automaticObjects, name) {
			continue
		}
		list, err := env.Cluster.Find(ctx, k.GVR, namespace, cluster.Selector{})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if apierrors.IsForbidden(err) {
			out = append(out, name+" (cannot be listed)")
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			all, here[o.UID] = append(all, held{k.GVK.Kind, o}), true
		}
	}
	for i := range all {
		kind, o := all[i].kind, &all[i].object
		goes := slices.Contains(env.Runtime.Along, kind+" "+namespace+"/"+o.Name)
		ours, err := oursIn(ctx, env, inv, kind, o)
		if err != nil {
			return nil, err
		}
		if !goes && !ours && !automatic(kind, o, here) {
			out = append(out, kind+" "+clean.Name(o.Name))
		}
	}
	return out, nil
}

// instances lists the custom resources of the named CRD.
func instances(ctx context.Context, env steps.Env, crd string) ([]string, error) {
	kinds, err := env.Cluster.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, k := range kinds {
		if k.GVR.GroupResource().String() != crd {
			continue
		}
		list, err := env.Cluster.Find(ctx, k.GVR, "", cluster.Selector{})
		if err != nil {
			return nil, err
		}
		for i := range list {
			ours, err := oursIn(ctx, env, inv, k.GVK.Kind, &list[i])
			if err != nil {
				return nil, err
			}
			if !ours {
				out = append(out, k.GVK.Kind+" "+list[i].Namespace+"/"+clean.Name(list[i].Name))
			}
		}
	}
	return out, nil
}

// oursIn reports whether this link created an object and no other link uses it.
func oursIn(
	ctx context.Context, env steps.Env, inv *inventory.Inventory, kind string, o *metav1.PartialObjectMetadata,
) (bool, error) {
	if !inv.Created(kind, o) {
		return false, nil
	}
	users, claims, err := inventory.UsersOf(ctx, env, o)
	named := slices.Contains(
		env.Runtime.Found, inventory.Describe(steps.Entry{Kind: kind, Namespace: o.Namespace, Name: o.Name}.Object()),
	)
	return len(users) == 0 && (len(claims) == 0 || named), err
}

// automatic reports whether every namespace contains the object, or whether its owner is in the same namespace. In the
// second case only the owner counts. here contains the UIDs of the namespace's objects.
func automatic(kind string, o *metav1.PartialObjectMetadata, here map[types.UID]bool) bool {
	if owner := metav1.GetControllerOf(o); owner != nil && here[owner.UID] {
		return true
	}
	switch kind {
	case "ConfigMap":
		return o.Name == "kube-root-ca.crt" || o.Name == "openshift-service-ca.crt"
	case "ServiceAccount":
		return o.Name == "default"
	}
	return false
}
