package webnode

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rbac = "rbac.authorization.k8s.io"

func object(version, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	o.SetName(name)
	o.SetNamespace(namespace)
	return o
}

// objects returns the objects that the hook applies for a user, in the same order (OSC/ondemand e5bbaf1d7
// hooks/k8s-bootstrap/yaml: namespace.yaml, network-policy.yaml, rolebinding.yaml and job-pod-reaper.yaml).
func objects(env map[string]string, namespace, user string, now time.Time) []*unstructured.Unstructured {
	space := object("v1", "Namespace", "", namespace)
	space.SetLabels(map[string]string{"app.kubernetes.io/name": "open-ondemand"})
	space.SetAnnotations(map[string]string{"openondemand.org/last-hook-execution": strconv.FormatInt(now.Unix(), 10)})
	policy := object("networking.k8s.io/v1", "NetworkPolicy", namespace, "deny-from-other-namespaces")
	policy.Object["spec"] = map[string]any{
		"podSelector": map[string]any{},
		"ingress": []any{map[string]any{"from": []any{
			map[string]any{"podSelector": map[string]any{}},
			map[string]any{"ipBlock": map[string]any{"cidr": env["NETWORK_POLICY_ALLOW_CIDR"]}},
		}}},
	}
	own := map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": namespace}
	// RBAC ignores the namespace of a User.
	person := map[string]any{"apiGroup": rbac, "kind": "User", "name": user, "namespace": namespace}
	all := []*unstructured.Unstructured{
		space, policy,
		binding(namespace, user+"-ood-initializer", "ood-initializer", own),
		binding(namespace, user+"-ood-user", "ood-user", person),
	}
	if env["USE_JOB_POD_REAPER"] == "true" {
		reaper := map[string]any{"kind": "ServiceAccount", "name": "job-pod-reaper", "namespace": "job-pod-reaper"}
		all = append(all, binding(namespace, user+"-job-pod-reaper-rolebinding", "job-pod-reaper", reaper))
	}
	return all
}

func binding(namespace, name, role string, subject map[string]any) *unstructured.Unstructured {
	b := object(rbac+"/v1", "RoleBinding", namespace, name)
	b.Object["roleRef"] = map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": role}
	b.Object["subjects"] = []any{subject}
	return b
}
