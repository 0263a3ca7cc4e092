package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster"
	"carrick/steps"
)

// Grant is a binding that gives accounts of one namespace permissions.
type Grant struct {
	Account string // the ServiceAccount's name; "": all of the namespace
	Space   string // the accounts' namespace
	Binding string // its name
	Of      string // the namespace of a RoleBinding; "": a ClusterRoleBinding
	Role    string // as in ClusterRole/view
}

func (g Grant) String() string {
	who := "all accounts of " + g.Space
	if g.Account != "" {
		who = "ServiceAccount " + g.Space + "/" + cluster.Clean(g.Account)
	}
	where := "everywhere"
	if g.Of != "" {
		where = "in " + cluster.Clean(g.Of)
	}
	return fmt.Sprintf("%s, with %s %s (binding %s)", who, cluster.Clean(g.Role), where, cluster.Clean(g.Binding))
}

// Object is the binding as kubectl get takes it.
func (g Grant) Object() string {
	if g.Of == "" {
		return "clusterrolebinding " + steps.Quoted(g.Binding)
	}
	return "-n " + steps.Quoted(g.Of) + " rolebinding " + steps.Quoted(g.Binding)
}

// Grants returns the bindings that give ServiceAccounts of a namespace permissions, inside it and elsewhere, in order.
// What every account of the cluster has is left out.
func Grants(ctx context.Context, c *cluster.Cluster, namespace string) ([]Grant, error) {
	var everywhere []*rbacv1.ClusterRoleBinding
	var within []*rbacv1.RoleBinding
	err := Together(
		func() (err error) {
			everywhere, err = List[rbacv1.ClusterRoleBinding](ctx, c, ClusterRoleBindings, "", cluster.Selector{})
			return err
		},
		func() (err error) {
			within, err = List[rbacv1.RoleBinding](ctx, c, RoleBindings, "", cluster.Selector{})
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	var out []Grant
	add := func(of, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		for _, s := range subjects {
			account, is := accountOf(s, cmp.Or(s.Namespace, of), namespace)
			if is {
				out = append(out, Grant{Account: account, Space: namespace, Binding: name, Of: of, Role: role.Kind + "/" + role.Name})
			}
		}
	}
	for _, b := range everywhere {
		add("", b.Name, b.RoleRef, b.Subjects)
	}
	for _, b := range within {
		add(b.Namespace, b.Name, b.RoleRef, b.Subjects)
	}
	slices.SortFunc(out, func(a, b Grant) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

// accountOf returns which account of a namespace a subject is, "" for all of them.
func accountOf(s rbacv1.Subject, of, namespace string) (name string, is bool) {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return s.Name, of == namespace
	case rbacv1.UserKind:
		name, is = strings.CutPrefix(s.Name, "system:serviceaccount:"+namespace+":")
		return name, is
	case rbacv1.GroupKind:
		return "", s.Name == "system:serviceaccounts:"+namespace
	}
	return "", false
}
