package stepstest

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// allows reports whether a person is allowed to do something. The admin has all permissions that are not denied, and
// others have those that RBAC grants and that are not denied.
func (s *server) allows(who person, a *authorizationv1.ResourceAttributes) bool {
	words := []string{a.Verb, resource(a), a.Namespace}
	if who.name != admin {
		words = slices.Insert(words, 0, who.name)
	}
	line := strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	if slices.Contains(s.denied, line) || who.name == admin && slices.Contains(s.denied, a.Verb+" "+resource(a)) {
		return false
	}
	if who.name == admin {
		return true
	}
	if strings.HasPrefix(a.Resource, "selfsubject") || slices.Contains(who.groups, masters) {
		return true
	}
	for _, r := range s.rules(who, a.Namespace) {
		if covers(r.Verbs, a.Verb) && covers(r.APIGroups, a.Group) && covers(r.Resources, resource(a)) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name)) {
			return true
		}
	}
	return false
}

// masters is the group that has all permissions.
const masters = "system:masters"

// is reports whether a subject of a binding is that person.
func (who person) is(s rbacv1.Subject) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return who.name == "system:serviceaccount:"+s.Namespace+":"+s.Name
	case rbacv1.GroupKind:
		space, is := strings.CutPrefix(s.Name, "system:serviceaccounts:")
		return s.Name == "system:authenticated" || slices.Contains(who.groups, s.Name) ||
			is && strings.HasPrefix(who.name, "system:serviceaccount:"+space+":")
	}
	return s.Kind == rbacv1.UserKind && who.name == s.Name
}

func resource(a *authorizationv1.ResourceAttributes) string {
	if a.Subresource != "" {
		return a.Resource + "/" + a.Subresource
	}
	return a.Resource
}

func covers(list []string, v string) bool {
	return slices.Contains(list, v) || slices.Contains(list, "*")
}

// rules returns the rules of all roles that are bound to a user in a namespace.
func (s *server) rules(who person, namespace string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, o := range s.objects {
		var subjects []rbacv1.Subject
		var ref rbacv1.RoleRef
		switch o.GetKind() {
		case "RoleBinding":
			if o.GetNamespace() != namespace {
				continue
			}
			var b rbacv1.RoleBinding
			if convert(o, &b) == nil {
				subjects, ref = b.Subjects, b.RoleRef
			}
		case "ClusterRoleBinding":
			var b rbacv1.ClusterRoleBinding
			if convert(o, &b) == nil {
				subjects, ref = b.Subjects, b.RoleRef
			}
		}
		for _, sub := range subjects {
			if who.is(sub) {
				out = append(out, s.roleRules(ref, o.GetNamespace())...)
			}
		}
	}
	return out
}

func (s *server) roleRules(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	for _, o := range s.objects {
		if o.GetKind() != ref.Kind || o.GetName() != ref.Name || (ref.Kind == "Role" && o.GetNamespace() != namespace) {
			continue
		}
		var r rbacv1.ClusterRole // both kinds have their rules in the same field
		if convert(o, &r) == nil {
			return r.Rules
		}
	}
	return nil
}

func (s *server) rulesReview(who person, namespace string) authorizationv1.SubjectRulesReviewStatus {
	out := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{
		{
			APIGroups: []string{"authorization.k8s.io"},
			Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
			Verbs:     []string{"create"},
		},
		{ // every ServiceAccount, from Kubernetes 1.37 on
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"clustertrustbundles"},
			Verbs: []string{"get", "list", "watch"},
		},
	}}
	rules := s.rules(who, namespace)
	if slices.Contains(who.groups, masters) {
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	}
	for _, r := range rules {
		out.ResourceRules = append(
			out.ResourceRules,
			authorizationv1.ResourceRule{
				APIGroups: r.APIGroups, Resources: r.Resources, Verbs: r.Verbs, ResourceNames: r.ResourceNames,
			},
		)
	}
	return out
}

func convert(o *unstructured.Unstructured, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, to)
}
