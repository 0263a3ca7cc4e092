package steps

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"carrick/cluster/permission"
)

// Grant returns YAML that a cluster admin can apply to grant the permissions. It has one Role per namespace, and a
// ClusterRole for cluster-wide permissions. It creates each namespace in fresh before the Role in that namespace.
func Grant(name string, rights []permission.Rule, fresh ...string) string {
	byNamespace := map[string][]rbacv1.PolicyRule{}
	for _, r := range rights {
		everywhere := r
		everywhere.Namespace, everywhere.Name = "", ""
		if r.Namespace != "" && slices.Contains(rights, everywhere) {
			continue // already granted in all namespaces
		}
		byNamespace[r.Namespace] = addRule(byNamespace[r.Namespace], r)
	}
	var docs []string
	spaces := slices.Sorted(maps.Keys(byNamespace))
	for _, ns := range spaces {
		var obj any
		if slices.Contains(fresh, ns) {
			docs = append(docs, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+ns+"\n")
		}
		if ns == "" {
			r := rbacv1.ClusterRole{Rules: byNamespace[ns]}
			r.APIVersion, r.Kind, r.Name = rbacv1.SchemeGroupVersion.String(), "ClusterRole", name
			obj = r
		} else {
			r := rbacv1.Role{Rules: byNamespace[ns]}
			r.APIVersion, r.Kind, r.Name, r.Namespace = rbacv1.SchemeGroupVersion.String(), "Role", name, ns
			obj = r
		}
		b, err := yaml.Marshal(obj)
		if err != nil {
			continue // rules of plain strings always marshal
		}
		docs = append(docs, string(b))
	}
	return strings.Join(docs, "---\n")
}

// RuleOf returns the RBAC rule that grants a permission for all objects of the resource.
func RuleOf(r permission.Rule) rbacv1.PolicyRule {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{resource}, Verbs: []string{r.Verb}}
}

// VerbsByName lists the verbs that Grant restricts to the object name of a permission, if the permission has one. A
// user who can bind every role, or approve for every signer, can obtain all permissions.
var VerbsByName = []string{"approve", "bind", "escalate", "impersonate", "sign", "use"}

func addRule(rules []rbacv1.PolicyRule, r permission.Rule) []rbacv1.PolicyRule {
	rule := RuleOf(r)
	if r.Name != "" && slices.Contains(VerbsByName, r.Verb) {
		rule.ResourceNames = []string{r.Name}
	}
	for i := range rules {
		if rules[i].APIGroups[0] == r.Group && rules[i].Resources[0] == rule.Resources[0] &&
			slices.Equal(rules[i].ResourceNames, rule.ResourceNames) {
			if !slices.Contains(rules[i].Verbs, r.Verb) {
				rules[i].Verbs = append(rules[i].Verbs, r.Verb)
			}
			return rules
		}
	}
	return append(rules, rule)
}
