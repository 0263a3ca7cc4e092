package vsphere

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// leftoverBindings returns an action that deletes bindings to roles of removed PodSecurityPolicies. It keeps a binding
// whose role also grants other permissions. An undo does not recreate the bindings. The plan states this.
func leftoverBindings() action.Call {
	return action.Call{
		Preview: planLeftovers,
		Make:    deleteLeftovers,
		Left:    func(context.Context, steps.Env) (steps.Change, error) { return steps.Change{}, nil },
		Revert:  func(context.Context, steps.Env, steps.Progress) error { return nil },
		Exports: func(ctx context.Context, e steps.Env) ([]action.Exported, error) {
			all, err := pspBindings(ctx, e)
			var out []action.Exported
			for _, b := range all {
				out = append(
					out, action.Exported{Hand: e.Kubectl() + " -n " + b.Namespace + " delete rolebinding " + steps.Quoted(b.Name)},
				)
			}
			return out, err
		},
	}
}

func planLeftovers(ctx context.Context, e steps.Env) (steps.Change, error) {
	var c steps.Change
	all, err := pspBindings(ctx, e)
	if err != nil {
		return c, err
	}
	for _, b := range all {
		more, err := givesMore(ctx, e, b.RoleRef.Name)
		if err != nil {
			return c, err
		}
		item := steps.Item{
			Verb: steps.Delete, What: "RoleBinding " + b.Namespace + "/" + b.Name, Hash: steps.HashOf(string(b.UID)),
			Note: "the cluster serves no PodSecurityPolicies, so the binding has no effect. An undo does not recreate it",
		}
		if more {
			item.Verb, item.Note = steps.Leave, "ClusterRole "+clean.Text(b.RoleRef.Name)+
				" grants more than the use of PodSecurityPolicies"
		} else {
			c.Permissions = append(
				c.Permissions,
				permission.Rule{
					Verb: "delete", Group: rbacv1.GroupName, Resource: "rolebindings", Namespace: b.Namespace, Name: b.Name,
				},
			)
		}
		c.Items = append(c.Items, item)
	}
	return c, nil
}

func deleteLeftovers(ctx context.Context, e steps.Env, say steps.Progress) error {
	all, err := pspBindings(ctx, e)
	if err != nil {
		return err
	}
	for _, b := range all {
		if more, err := givesMore(ctx, e, b.RoleRef.Name); err != nil || more {
			if err != nil {
				return err
			}
			continue
		}
		if err := e.Cluster.Delete(ctx, check.RoleBindings, b.Namespace, b.Name, b.UID); err != nil {
			return err
		}
		say.Did(steps.Delete, "RoleBinding "+b.Namespace+"/"+b.Name, "")
	}
	return nil
}

// givesMore reports whether a ClusterRole grants permissions other than the use of
// PodSecurityPolicies. A missing role grants nothing.
func givesMore(ctx context.Context, e steps.Env, name string) (bool, error) {
	role, err := check.Get[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return !slices.Equal(r.Resources, []string{"podsecuritypolicies"}) || len(r.NonResourceURLs) > 0
	}), nil
}
