package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
)

// Grant is a binding that grants permissions to ServiceAccounts in one namespace.
type Grant struct {
	Account string            // name of the ServiceAccount; "" means all in the namespace
	Space   string            // the namespace of the ServiceAccounts
	Binding string            // name of the binding
	Of      string            // namespace of a RoleBinding; "" for a ClusterRoleBinding
	Role    string            // such as ClusterRole/view
	Labels  map[string]string // labels of the binding

	subject         rbacv1.Subject // the account, or the group of all accounts in the namespace
	index, subjects int            // position among the binding's subjects, and their number
}

// Bootstrap reports whether the cluster itself creates the binding. The creator is the API server or an OpenShift
// controller, such as the one for system:image-pullers in every project.
func (g Grant) Bootstrap() bool {
	_, is := g.Labels["kubernetes.io/bootstrapping"]
	return is || strings.HasPrefix(g.Binding, "system:")
}

func (g Grant) String() string {
	who := "all ServiceAccounts in " + g.Space
	if g.Account != "" {
		who = "ServiceAccount " + g.Space + "/" + clean.Text(g.Account)
	}
	where := "everywhere"
	if g.Of != "" {
		where = "in " + clean.Text(g.Of)
	}
	return fmt.Sprintf("%s, with %s %s (binding %s)", who, clean.Text(g.Role), where, clean.Text(g.Binding))
}

// Object returns the binding as arguments of kubectl get.
func (g Grant) Object() string {
	if g.Of == "" {
		return "clusterrolebinding " + steps.Quoted(g.Binding)
	}
	return "-n " + steps.Quoted(g.Of) + " rolebinding " + steps.Quoted(g.Binding)
}

// Show returns the command that prints the binding. kubectl is the command with its context.
func (g Grant) Show(kubectl string) string { return kubectl + " get " + g.Object() + " -o yaml" }

// Without returns a command that revokes the account's permissions. The command deletes the binding. If the binding has
// other subjects, the command removes only the account, unless the subjects have changed in the meantime. If the
// cluster itself creates the binding, the command only prints it. kubectl is the command with its context.
func (g Grant) Without(kubectl string) string {
	if g.Bootstrap() {
		return g.Show(kubectl) + "    # Kubernetes creates this binding: read it before you remove the account from it"
	}
	if g.subjects == 1 {
		if g.Of == "" {
			return kubectl + " delete " + g.Object()
		}
		return kubectl + " -n " + steps.Quoted(g.Of) + " delete rolebinding " + steps.Quoted(g.Binding)
	}
	var patch []steps.PatchOp
	for _, of := range []struct{ key, value string }{
		{"kind", g.subject.Kind}, {"name", g.subject.Name}, {"namespace", g.subject.Namespace},
	} {
		if of.value != "" {
			at := steps.Pointer("subjects", g.index, of.key)
			patch = append(patch, steps.PatchOp{Op: "test", Path: at, Value: of.value})
		}
	}
	patch = append(patch, steps.PatchOp{Op: "remove", Path: steps.Pointer("subjects", g.index)})
	return kubectl + " patch " + g.Object() + " " + steps.JSONPatch(patch...)
}

// RoleRef returns the reference to the role.
func (g Grant) RoleRef() rbacv1.RoleRef {
	kind, name, _ := strings.Cut(g.Role, "/")
	return rbacv1.RoleRef{Kind: kind, Name: name}
}

// Grants returns the bindings that grant permissions to ServiceAccounts of a namespace, sorted. The permissions can
// apply to that namespace or to others. Grants omits permissions that every account of the cluster has.
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
	add := func(b metav1.ObjectMeta, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		for i, s := range subjects {
			account, is := accountOf(s, cmp.Or(s.Namespace, b.Namespace), namespace)
			if is {
				out = append(out, Grant{
					Account: account, Space: namespace, Binding: b.Name, Of: b.Namespace, Role: role.Kind + "/" + role.Name,
					Labels: b.Labels, subject: s, index: i, subjects: len(subjects),
				})
			}
		}
	}
	for _, b := range everywhere {
		add(b.ObjectMeta, b.RoleRef, b.Subjects)
	}
	for _, b := range within {
		add(b.ObjectMeta, b.RoleRef, b.Subjects)
	}
	slices.SortFunc(out, func(a, b Grant) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

// accountOf returns the account in namespace that a subject refers to. If the subject is the group of all accounts in
// the namespace, name is "".
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

// GrantedEverywhere reports whether ClusterRoleBindings grant a rule to the ServiceAccount of a workload's pods. This
// distinguishes a genuine workload from an imitation. A user with write access to a namespace can set the labels and
// variables of its workloads, but can't create a ClusterRoleBinding.
func GrantedEverywhere(
	ctx context.Context, c *cluster.Cluster, namespace string, pod corev1.PodSpec, need rbacv1.PolicyRule,
) (bool, error) {
	all, err := List[rbacv1.ClusterRoleBinding](ctx, c, ClusterRoleBindings, "", cluster.Selector{})
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	name := cmp.Or(pod.ServiceAccountName, "default")
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	for _, b := range all {
		if !slices.Contains(b.Subjects, account) {
			continue
		}
		rules, err := RulesOf(ctx, c, b.RoleRef, "")
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return false, err
		}
		if ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{need}); ok {
			return true, nil
		}
	}
	return false, nil
}

// RulesOf returns the rules of the role that a binding refers to. namespace is the namespace of the binding.
func RulesOf(
	ctx context.Context, c *cluster.Cluster, ref rbacv1.RoleRef, namespace string,
) ([]rbacv1.PolicyRule, error) {
	kind := Roles
	if ref.Kind == "ClusterRole" {
		kind, namespace = ClusterRoles, ""
	}
	o, err := FromList(ctx, c, kind, namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	r, err := As[rbacv1.Role](o) // a ClusterRole has its rules in the same field
	if err != nil {
		return nil, err
	}
	return r.Rules, nil
}

// FromList reads one object like Get, but from a list. One list serves all objects of a kind, and it can start before
// their names are known. If the user is not allowed to list them, FromList reads the single object.
func FromList(
	ctx context.Context, c *cluster.Cluster, gvr schema.GroupVersionResource, namespace, name string,
) (*unstructured.Unstructured, error) {
	all, err := c.List(ctx, gvr, namespace, cluster.Selector{})
	if apierrors.IsForbidden(err) {
		return c.Get(ctx, gvr, namespace, name)
	}
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.GetName() == name && o.GetNamespace() == namespace {
			return o, nil
		}
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}
