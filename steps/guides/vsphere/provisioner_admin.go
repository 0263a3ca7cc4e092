package vsphere

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// anything is what cluster-admin grants.
var anything = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}

// adminBindings finds the bindings that allow a provisioner's ServiceAccount anything, everywhere or in its namespace;
// found is "" where there is none. What it needs comes from bindings of its own.
func adminBindings(ctx context.Context, e steps.Env, p *provisioner, a check.Account) (found, fix string, err error) {
	is := func(s rbacv1.Subject) bool {
		return a.Is(s) || s.Kind == rbacv1.GroupKind && s.Name == "system:serviceaccounts:"+a.Namespace
	}
	var names, fixes []string
	var rest []rbacv1.PolicyRule
	for _, namespace := range []string{"", a.Namespace} {
		bindings, err := check.Granted(ctx, e.Cluster, namespace, is)
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return "", "", err
		}
		for _, b := range bindings {
			if ok, _ := validation.Covers(b.Rules, []rbacv1.PolicyRule{anything}); !ok {
				if namespace == "" {
					rest = append(rest, b.Rules...)
				}
				continue
			}
			names = append(names, cluster.CleanName(b.String())+" to "+cluster.CleanName(b.RoleName()))
			what := "delete clusterrolebinding "
			if namespace != "" {
				what = "-n " + namespace + " delete rolebinding "
			}
			fixes = append(fixes, e.Kubectl()+" "+what+steps.Quoted(b.Name))
		}
	}
	if len(names) == 0 {
		return "", "", nil
	}
	if ok, _ := validation.Covers(rest, []rbacv1.PolicyRule{createVolumes}); !ok {
		fixes = slices.Insert(fixes, 0, rightsFix(ctx, e, p, a.Name))
	}
	found = check.Some(names) + " allows ServiceAccount " + a.Namespace + "/" + a.Name + " anything"
	return found, strings.Join(fixes, "\n"), nil
}
