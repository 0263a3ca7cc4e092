package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster/clean"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

// anything is the rule that cluster-admin grants.
var anything = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}

// adminBindings finds the bindings that allow a provisioner's ServiceAccount everything,
// cluster-wide or in a namespace. found is "" if there are none. Separate bindings grant the
// permissions that the provisioner requires.
func adminBindings(ctx context.Context, e steps.Env, p *provisioner, a check.Account) (found, fix string, err error) {
	grants, err := check.Grants(ctx, e.Cluster, a.Namespace)
	if apierrors.IsForbidden(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	e.Cluster.StartList(p.Namespace, check.Roles)
	var says, fixes []string
	rest := map[string][]rbacv1.PolicyRule{} // by namespace
	for _, g := range grants {
		if g.Account != "" && g.Account != a.Name {
			continue
		}
		rules, err := check.RulesOf(ctx, e.Cluster, g.RoleRef(), g.Of)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return "", "", err
		}
		if ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{anything}); !ok {
			rest[g.Of] = append(rest[g.Of], rules...)
			continue
		}
		says = append(says, allowsAnything(g, a, len(says) > 0))
		if g.Account == "" && !g.Bootstrap() {
			fixes = append(fixes, g.Show(e.Kubectl())+"    # it applies to every ServiceAccount of namespace "+a.Namespace)
		} else {
			fixes = append(fixes, g.Without(e.Kubectl()))
		}
	}
	if len(says) == 0 {
		return "", "", nil
	}
	fix = strings.Join(fixes, "\n")
	if first := missingGrants(ctx, e, p, a.Name, rest); first != "" {
		fix = first + "\n# then: " + strings.Join(fixes, "\n# then: ")
	}
	return check.FirstOf(says, 3, "; "), fix, nil
}

// allowsAnything describes which binding allows an account everything, and where. again means that
// a previous description has already named the account.
func allowsAnything(g check.Grant, a check.Account, again bool) string {
	binding, where := "ClusterRoleBinding "+g.Binding, ""
	if g.Of != "" {
		binding, where = "RoleBinding "+g.Of+"/"+g.Binding, " in namespace "+clean.Name(g.Of)
	}
	who := "ServiceAccount " + a.Namespace + "/" + a.Name
	if again {
		who = "it"
	}
	ref := g.RoleRef()
	return fmt.Sprintf("%s to %s allows %s anything%s",
		clean.Name(binding), clean.Name(ref.Kind+" "+ref.Name), who, where)
}

// missingGrants returns the commands that grant the permissions that a provisioner requires and
// these rules do not grant, or "" if the rules suffice.
func missingGrants(
	ctx context.Context, e steps.Env, p *provisioner, account string, rules map[string][]rbacv1.PolicyRule,
) string {
	var everywhere, own []permission.Rule
	for _, r := range provisionerPermissions(p.Namespace) {
		if r.Namespace == "" {
			everywhere = append(everywhere, r)
		} else {
			own = append(own, r)
		}
	}
	var fixes []string
	if !grantAll(rules, everywhere) {
		fixes = append(fixes, rightsFix(ctx, e, p, account))
	}
	if !grantAll(rules, own) {
		fixes = append(fixes, endpointRightsFix(ctx, e, p, account))
	}
	return strings.Join(slices.Compact(fixes), "\n")
}

// endpointRightsFix returns the command that allows a provisioner to write the Endpoints of its
// leader election.
func endpointRightsFix(ctx context.Context, e steps.Env, p *provisioner, account string) string {
	if by, err := p.made(ctx, e); err == nil && by != "" {
		return e.ApplyStep("nfs")
	}
	return fmt.Sprintf("%[1]s -n %[3]s create role %[2]s-leader --resource=endpoints "+
		"--verb=get,list,watch,create,update,patch\n"+
		"%[1]s -n %[3]s create rolebinding %[2]s-leader --role=%[2]s-leader --serviceaccount=%[3]s:%[4]s",
		e.Kubectl(), p.Name, p.Namespace, account)
}

// grantAll reports whether rules grant all permissions. The keys of rules are the namespaces of
// their bindings ("": cluster-wide).
func grantAll(rules map[string][]rbacv1.PolicyRule, rights []permission.Rule) bool {
	for _, r := range rights {
		granted := rules[""]
		if r.Namespace != "" {
			granted = slices.Concat(granted, rules[r.Namespace])
		}
		if ok, _ := validation.Covers(granted, []rbacv1.PolicyRule{steps.RuleOf(r)}); !ok {
			return false
		}
	}
	return true
}
