package stepstest

import (
	"net/http"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discovery is what the fake says that it serves: what a check may dry-run, and
// PodSecurityPolicies where a state holds one, as clusters before 1.25 do.
func (s *server) discovery(w http.ResponseWriter, core bool) {
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	list := apidiscovery.APIGroupDiscoveryList{}
	if core {
		list.Items = group("", "v1",
			served("services", "Service", apidiscovery.ScopeNamespace), served("pods", "Pod", apidiscovery.ScopeNamespace), served("namespaces", "Namespace", apidiscovery.ScopeCluster))
	} else {
		for _, o := range s.objects {
			if o.GetAPIVersion() == "policy/v1beta1" && o.GetKind() == "PodSecurityPolicy" {
				list.Items = group("policy", "v1beta1", served("podsecuritypolicies", "PodSecurityPolicy", apidiscovery.ScopeCluster))
			}
		}
	}
	reply(w, 200, list)
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
