package stepstest

import (
	"net/http"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// discovery is what the fake says that it serves: what a check may dry-run, the kinds of the definitions that a state
// holds, PodSecurityPolicies where it holds one, as clusters before 1.25 do, and MutatingAdmissionPolicies from 1.36 on.
func (s *server) discovery(w http.ResponseWriter, core bool) {
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	list := apidiscovery.APIGroupDiscoveryList{}
	if core {
		list.Items = group("", "v1",
			served("services", "Service", apidiscovery.ScopeNamespace), served("pods", "Pod", apidiscovery.ScopeNamespace), served("namespaces", "Namespace", apidiscovery.ScopeCluster))
		reply(w, 200, list)
		return
	}
	if s.minor() >= 36 {
		list.Items = append(list.Items, group("admissionregistration.k8s.io", "v1",
			served("mutatingadmissionpolicies", "MutatingAdmissionPolicy", apidiscovery.ScopeCluster), served("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", apidiscovery.ScopeCluster))...)
	}
	if slices.ContainsFunc(s.objects, func(o *unstructured.Unstructured) bool {
		return o.GetAPIVersion() == "policy/v1beta1" && o.GetKind() == "PodSecurityPolicy"
	}) {
		list.Items = append(list.Items, group("policy", "v1beta1", served("podsecuritypolicies", "PodSecurityPolicy", apidiscovery.ScopeCluster))...)
	}
	for _, o := range s.objects {
		if o.GetKind() == "CustomResourceDefinition" {
			list.Items = append(list.Items, defined(o)...)
		}
	}
	reply(w, 200, list)
}

// defined are the versions that a definition serves, as a group of its own.
func defined(crd *unstructured.Unstructured) []apidiscovery.APIGroupDiscovery {
	text := func(path ...string) string {
		v, _, _ := unstructured.NestedString(crd.Object, path...)
		return v
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var out []apidiscovery.APIGroupDiscovery
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		plural, kind := text("spec", "names", "plural"), text("spec", "names", "kind")
		if version["served"] != true || plural == "" || kind == "" {
			continue
		}
		scope := apidiscovery.ScopeNamespace
		if text("spec", "scope") == "Cluster" {
			scope = apidiscovery.ScopeCluster
		}
		out = append(out, group(text("spec", "group"), name, served(plural, kind, scope))...)
	}
	return out
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
	return apidiscovery.APIResourceDiscovery{Resource: resource, ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Scope: scope, Verbs: []string{"create", "list", "patch"}}
}
