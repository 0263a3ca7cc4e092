package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster"
	"carrick/steps"
)

// Binding is a RoleBinding. If Namespace is "", it is a ClusterRoleBinding.
type Binding struct {
	Namespace, Name string
	Role            rbacv1.RoleRef
	Rules           []rbacv1.PolicyRule // rules of the role; only Granted sets them
	Missing         bool                // the role does not exist; only Granted sets it
}

// String returns the kind and the name, such as "RoleBinding renku/sessions".
func (b Binding) String() string {
	if b.Namespace == "" {
		return "ClusterRoleBinding " + b.Name
	}
	return "RoleBinding " + b.Namespace + "/" + b.Name
}

// RoleName returns the kind and the name of the role, such as "ClusterRole view".
func (b Binding) RoleName() string { return b.Role.Kind + " " + b.Role.Name }

// Bindings returns the RoleBindings of a namespace that have a matching subject. The callback (is) decides which
// subjects match. If namespace is "", it returns ClusterRoleBindings instead. The result is sorted by name.
func Bindings(
	ctx context.Context, c *cluster.Cluster, namespace string, is func(rbacv1.Subject) bool,
) ([]Binding, error) {
	var out []Binding
	add := func(name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if slices.ContainsFunc(subjects, is) {
			out = append(out, Binding{Namespace: namespace, Name: name, Role: role})
		}
	}
	if namespace == "" {
		all, err := List[rbacv1.ClusterRoleBinding](ctx, c, ClusterRoleBindings, "", cluster.Selector{})
		for _, b := range all {
			add(b.Name, b.RoleRef, b.Subjects)
		}
		return out, err
	}
	all, err := List[rbacv1.RoleBinding](ctx, c, RoleBindings, namespace, cluster.Selector{})
	for _, b := range all {
		add(b.Name, b.RoleRef, b.Subjects)
	}
	return out, err
}

// Granted is like Bindings but also reads the rules of the roles. A role that does not exist grants nothing.
func Granted(
	ctx context.Context, c *cluster.Cluster, namespace string, is func(rbacv1.Subject) bool,
) ([]Binding, error) {
	out, err := Bindings(ctx, c, namespace, is)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Rules, err = RulesOf(ctx, c, out[i].Role, namespace)
		if out[i].Missing = apierrors.IsNotFound(err); err != nil && !out[i].Missing {
			return nil, err
		}
	}
	return out, nil
}

// Covers verifies that the roles of bindings from Granted grant all the rules. The finding names the roles.
func Covers(of []Binding, need []rbacv1.PolicyRule) steps.Result {
	var names []string
	for _, b := range of {
		name := b.RoleName()
		if b.Missing {
			name += " (does not exist)"
		}
		names = append(names, name)
	}
	if ok, lacking := validation.Covers(RulesIn(of), need); !ok {
		words := RuleSummaries(lacking)
		return steps.Failed(fmt.Sprintf("%s does not grant: %s", strings.Join(names, ", "), strings.Join(words, "; ")), "")
	}
	return steps.Passed("%s covers all %d required rules", strings.Join(names, ", "), len(need))
}

// RulesIn returns the rules of all bindings.
func RulesIn(bindings []Binding) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, b := range bindings {
		out = append(out, b.Rules...)
	}
	return out
}
