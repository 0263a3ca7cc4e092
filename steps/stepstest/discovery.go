package stepstest

import (
	"net/http"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// core is what every state may dry-run, and whether it stands in a namespace.
var core = map[string]bool{"Service": true, "Pod": true, "Namespace": false, "PersistentVolumeClaim": true}

// discovery is what the fake says that it serves: what a check may dry-run, what
// the state's server section names, and PodSecurityPolicies where a state holds
// one, as clusters before 1.25 do.
func (s *server) discovery(w http.ResponseWriter, legacy bool) {
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	list := apidiscovery.APIGroupDiscoveryList{}
	if legacy {
		for kind, namespaced := range core {
			list.Items = serves(list.Items, schema.GroupVersionKind{Version: "v1", Kind: kind}, namespaced)
		}
		reply(w, 200, list)
		return
	}
	for _, kind := range s.also {
		list.Items = serves(list.Items, kind, false)
	}
	for _, o := range s.objects {
		if o.GetAPIVersion() == "policy/v1beta1" && o.GetKind() == "PodSecurityPolicy" {
			list.Items = serves(list.Items, o.GroupVersionKind(), false)
		}
	}
	reply(w, 200, list)
}

// serves adds a kind to what is served, once.
func serves(list []apidiscovery.APIGroupDiscovery, kind schema.GroupVersionKind, namespaced bool) []apidiscovery.APIGroupDiscovery {
	g := slices.IndexFunc(list, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == kind.Group })
	if g < 0 {
		g, list = len(list), append(list, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: kind.Group}})
	}
	versions := list[g].Versions
	v := slices.IndexFunc(versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == kind.Version })
	if v < 0 {
		v, versions = len(versions), append(versions, apidiscovery.APIVersionDiscovery{Version: kind.Version})
	}
	gvr, _ := meta.UnsafeGuessKindToResource(kind)
	is := func(r apidiscovery.APIResourceDiscovery) bool { return r.Resource == gvr.Resource }
	if !slices.ContainsFunc(versions[v].Resources, is) {
		scope := apidiscovery.ScopeCluster
		if namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		versions[v].Resources = append(versions[v].Resources, apidiscovery.APIResourceDiscovery{
			Resource: gvr.Resource, ResponseKind: &metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}, Scope: scope, Verbs: []string{"create", "list", "patch"},
		})
	}
	list[g].Versions = versions
	return list
}
