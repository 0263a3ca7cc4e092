package renku

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

// roleRules returns the rules of the Role in the session namespace. The Role contains all
// permissions that data-service, k8s-watcher, data-tasks and secrets-storage use, because these
// services share one ServiceAccount.
//
// Source: SwissDataScienceCenter/renku helm-chart/renku/templates/data-service (rbac,
// rbac_resource_pool, rbac_k8s_watcher, rbac_data_tasks) and secrets-storage/rbac. The published
// guide's Role is older. It grants two more verbs on quotas, but no permissions for Renku's
// optional features.
func roleRules(e steps.Env) []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	all := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	rules := []rbacv1.PolicyRule{
		rule("", "pods", append([]string{"delete"}, read...)...),
		rule("", "pods/log", read...),
		rule("", "services", read...),
		rule("", "endpoints", read...),
		rule("", "secrets", all...),
		rule("", "resourcequotas", "create", "delete", "get", "list", "patch"),
		rule("apps", "statefulsets", append([]string{"patch"}, read...)...),
		rule("amalthea.dev", "amaltheasessions", all...),
	}
	if e.Answers.Bool("renku.tracking") {
		rules = append(rules, rule("", "persistentvolumeclaims", "get", "list"))
	}
	if e.Answers.Bool("renku.reservations") {
		rules = append(rules, rule("apps", "deployments", "create", "delete", "get", "list", "patch", "watch"))
	}
	return rules
}

// clusterRules returns the rules for cluster-wide resources, which a Role cannot grant.
func clusterRules(e steps.Env) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{rule("scheduling.k8s.io", "priorityclasses", "get", "list")}
	if e.Answers.Bool("renku.tracking") {
		rules = append(rules, rule("", "nodes", "get", "list"))
	}
	return rules
}

// deletionRule returns the permission that Renku needs to delete a pool with a quota. Renku deletes
// the PriorityClass before the pool. If the remote cluster denies the deletion of the
// PriorityClass, Renku answers HTTP 500 (renku-data-services @ e81895b4:
// components/renku_data_services/crc/db.py delete_quota, k8s/clients.py K8sClusterClient.delete).
// Each PriorityClass has its own ClusterRole, because two links can share the ServiceAccount but
// not the pools.
func deletionRule(classes ...string) rbacv1.PolicyRule {
	r := rule("scheduling.k8s.io", "priorityclasses", "delete")
	r.ResourceNames = classes
	return r
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// usedPermissions returns the 22 permissions in the session namespace that Renku uses with all
// options disabled (renku-data-services, all calls of its Kubernetes clients).
func usedPermissions(ns string) []permission.Rule {
	return slices.Concat(
		check.Verbs("amalthea.dev", "amaltheasessions", ns, "list", "get", "watch", "create", "patch", "delete"),
		check.Verbs("", "secrets", ns, "list", "get", "create", "patch", "delete"),
		check.Verbs("", "pods", ns, "list", "get"),
		check.Verbs("", "pods/log", ns, "get"),
		check.Verbs("apps", "statefulsets", ns, "list", "get", "patch"),
		check.Verbs("", "resourcequotas", ns, "list", "get", "create", "patch", "delete"),
	)
}

// optionalPermissions returns the permissions in the session namespace that Renku uses only if
// its options are enabled.
func optionalPermissions(e steps.Env) (out []permission.Rule) {
	ns := sessionsNamespace(e)
	if e.Answers.Bool("renku.tracking") {
		out = append(out, check.Verbs("", "persistentvolumeclaims", ns, "list", "get")...)
	}
	if e.Answers.Bool("renku.reservations") {
		out = append(out, check.Verbs("apps", "deployments", ns, "list", "get", "watch", "create", "patch", "delete")...)
	}
	return out
}

// asYAML converts rules to lists and maps for a manifest template.
func asYAML(rules []rbacv1.PolicyRule) []any {
	var out []any
	for _, r := range rules {
		out = append(
			out, map[string]any{"apiGroups": anyList(r.APIGroups), "resources": anyList(r.Resources), "verbs": anyList(r.Verbs)},
		)
	}
	return out
}

func anyList(list []string) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}
