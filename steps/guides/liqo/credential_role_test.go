package liqo

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/steps"
)

func TestJudgeRole(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	for name, c := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  steps.Status
		words string
	}{
		"whole":   {append(append([]rbacv1.PolicyRule{}, copied...), renewed...), steps.Pass, "renews"},
		"of old":  {copied, steps.Warn, "no access to renews"},
		"nothing": {nil, steps.Fail, "lacks"},
		"a verb less": {
			append(
				[]rbacv1.PolicyRule{rule("offloading.liqo.io", "*", everyVerb...)},
				rule("authentication.liqo.io", "*", everyVerb[1:]...),
			),
			steps.Fail, "create resourceslices",
		},
		"a group more": {
			append(append([]rbacv1.PolicyRule{rule("", "secrets", "get")}, copied...), renewed...), steps.Warn, "get secrets",
		},
		"all of it": {[]rbacv1.PolicyRule{rule("*", "*", "*")}, steps.Warn, "grants more"},
	} {
		r := judgeRole(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: c.rules}, "fix", "newer")
		if r.Status != c.want || !strings.Contains(r.Found, c.words) {
			t.Errorf("%s: %s: %s", name, r.Status, r.Found)
		}
	}
}

func TestJudgeBindings(t *testing.T) {
	binding := func(name, kind, role, label string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}, Subjects: subjects}
		b.Name, b.Labels = name, map[string]string{remoteIDLabel: label}
		return b
	}
	user := rbacv1.Subject{Kind: rbacv1.UserKind, Name: "u"}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ns", Name: "a"}
	group := rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "u"}
	for name, c := range map[string]struct {
		all  []*rbacv1.RoleBinding
		user string
		want steps.Status
	}{
		"bound": {[]*rbacv1.RoleBinding{binding("b", "ClusterRole", "r", "milan", user)}, "u", steps.Pass},
		"among others": {
			[]*rbacv1.RoleBinding{
				binding("a", "ClusterRole", "x", "milan", user), binding("b", "ClusterRole", "r", "milan", group, user),
			},
			"u", steps.Pass,
		},
		"an account": {
			[]*rbacv1.RoleBinding{binding("b", "ClusterRole", "r", "milan", account)}, "system:serviceaccount:ns:a", steps.Pass,
		},
		"an account's namesake": {
			[]*rbacv1.RoleBinding{
				binding("b", "ClusterRole", "r", "milan", rbacv1.Subject{Kind: "ServiceAccount", Name: "a", Namespace: "other"}),
			},
			"system:serviceaccount:ns:a", steps.Fail,
		},
		"a group of that name": {[]*rbacv1.RoleBinding{binding("b", "ClusterRole", "r", "milan", group)}, "u", steps.Fail},
		"another user": {
			[]*rbacv1.RoleBinding{binding("b", "ClusterRole", "r", "milan", rbacv1.Subject{Kind: "User", Name: "U"})},
			"u",
			steps.Fail,
		},
		"a Role of that name": {[]*rbacv1.RoleBinding{binding("b", "Role", "r", "milan", user)}, "u", steps.Fail},
		"another ClusterRole": {
			[]*rbacv1.RoleBinding{binding(usualBinding, "ClusterRole", "x", "milan", user)}, "u", steps.Fail,
		},
		"another cluster's":      {[]*rbacv1.RoleBinding{binding("b", "ClusterRole", "r", "turin", user)}, "u", steps.Warn},
		"no subjects":            {[]*rbacv1.RoleBinding{binding("b", "ClusterRole", "r", "milan")}, "u", steps.Fail},
		"no binding":             {nil, "u", steps.Fail},
		"others' alone, unnamed": {[]*rbacv1.RoleBinding{binding("b", "ClusterRole", "x", "milan", group)}, "u", steps.Fail},
	} {
		if r := judgeBindings(c.all, "r", c.user, "milan"); r.Status != c.want {
			t.Errorf("%s: %s: %s", name, r.Status, r.Found)
		}
	}
}
