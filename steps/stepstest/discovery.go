package stepstest

import (
	"net/http"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// discovery answers with the kinds that the fake serves. These are the kinds that checks can dry-run and the kinds from
// the state's CRDs and server section. If the state contains a PodSecurityPolicy (clusters before 1.25), that kind is
// served, too. MutatingAdmissionPolicies are served from version 1.36 on.
func (s *server) discovery(w http.ResponseWriter, core bool) {
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	list := apidiscovery.APIGroupDiscoveryList{}
	if core {
		list.Items = group("", "v1",
			served("services", "Service", apidiscovery.ScopeNamespace), served("pods", "Pod", apidiscovery.ScopeNamespace),
			served("namespaces", "Namespace", apidiscovery.ScopeCluster),
			served("persistentvolumeclaims", "PersistentVolumeClaim", apidiscovery.ScopeNamespace),
			served("secrets", "Secret", apidiscovery.ScopeNamespace))
		list.Items = s.addWritten(list.Items, true)
		reply(w, 200, list)
		return
	}
	var all catalogue
	inventories := served("clusterroles", "ClusterRole", apidiscovery.ScopeCluster)
	all.add("rbac.authorization.k8s.io", "v1", inventories)
	if s.minor() >= 30 {
		all.add(
			"admissionregistration.k8s.io", "v1",
			served("validatingadmissionpolicies", "ValidatingAdmissionPolicy", apidiscovery.ScopeCluster),
		)
	}
	if s.minor() >= 36 {
		all.add(
			"admissionregistration.k8s.io", "v1",
			served("mutatingadmissionpolicies", "MutatingAdmissionPolicy", apidiscovery.ScopeCluster),
		)
		all.add(
			"admissionregistration.k8s.io", "v1",
			served("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", apidiscovery.ScopeCluster),
		)
	}
	for _, kind := range s.also {
		gvr, _ := meta.UnsafeGuessKindToResource(kind)
		all.add(kind.Group, kind.Version, served(gvr.Resource, kind.Kind, apidiscovery.ScopeCluster))
	}
	psp := false
	for _, o := range s.objects {
		switch {
		case o.GetAPIVersion() == "policy/v1beta1" && o.GetKind() == "PodSecurityPolicy":
			psp = true
		case o.GetKind() == "CustomResourceDefinition":
			all.define(o)
		}
	}
	if psp {
		all.add("policy", "v1beta1", served("podsecuritypolicies", "PodSecurityPolicy", apidiscovery.ScopeCluster))
	}
	list.Items = s.addWritten(all, false)
	reply(w, 200, list)
}

func (s *server) addWritten(all catalogue, core bool) catalogue {
	for _, o := range s.written {
		kind := o.GroupVersionKind()
		if core != (kind.Group == "") || all.serves(kind.Group, kind.Version, kind.Kind) {
			continue
		}
		scope := apidiscovery.ScopeCluster
		if o.GetNamespace() != "" {
			scope = apidiscovery.ScopeNamespace
		}
		gvr, _ := meta.UnsafeGuessKindToResource(kind)
		all.add(kind.Group, kind.Version, served(gvr.Resource, kind.Kind, scope))
	}
	return all
}

type catalogue []apidiscovery.APIGroupDiscovery

func (c *catalogue) serves(group, version, kind string) bool {
	for _, g := range *c {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				if g.Name == group && v.Version == version && r.ResponseKind.Kind == kind {
					return true
				}
			}
		}
	}
	return false
}

func (c *catalogue) add(name, version string, kind apidiscovery.APIResourceDiscovery) {
	kind.ResponseKind.Group, kind.ResponseKind.Version = name, version
	i := slices.IndexFunc(*c, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == name })
	if i < 0 {
		*c = append(*c, group(name, version, kind)...)
		return
	}
	g := &(*c)[i]
	j := slices.IndexFunc(g.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == version })
	if j < 0 {
		g.Versions = append(
			g.Versions, apidiscovery.APIVersionDiscovery{Version: version, Resources: []apidiscovery.APIResourceDiscovery{kind}},
		)
		return
	}
	g.Versions[j].Resources = append(g.Versions[j].Resources, kind)
}

// define adds the versions that a CRD serves, if the CRD names its kind.
func (c *catalogue) define(crd *unstructured.Unstructured) {
	text := func(path ...string) string {
		v, _, _ := unstructured.NestedString(crd.Object, path...)
		return v
	}
	plural, kind, scope := text("spec", "names", "plural"), text("spec", "names", "kind"), apidiscovery.ScopeNamespace
	if text("spec", "scope") == "Cluster" {
		scope = apidiscovery.ScopeCluster
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, _ := version["name"].(string); name != "" && version["served"] == true && plural != "" && kind != "" {
			c.add(text("spec", "group"), name, served(plural, kind, scope))
		}
	}
}

func group(name, version string, kinds ...apidiscovery.APIResourceDiscovery) []apidiscovery.APIGroupDiscovery {
	for i := range kinds {
		kinds[i].ResponseKind.Group, kinds[i].ResponseKind.Version = name, version
	}
	return []apidiscovery.APIGroupDiscovery{{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Versions:   []apidiscovery.APIVersionDiscovery{{Version: version, Resources: kinds}},
	}}
}

func served(resource, kind string, scope apidiscovery.ResourceScope) apidiscovery.APIResourceDiscovery {
	return apidiscovery.APIResourceDiscovery{
		Resource: resource, ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Scope: scope,
		Verbs: []string{"create", "list", "patch"},
	}
}
