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

// adminRule is the rule that cluster-admin grants.
var adminRule = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}

// adminBindings finds the bindings that grant all permissions to a provisioner's ServiceAccount,
// cluster-wide or in a namespace. found is "" if there are none. fix removes the ServiceAccount
// from these bindings. If other bindings do not grant all permissions that the provisioner
// requires, fix grants the missing permissions first.
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
	rest := map[string][]rbacv1.PolicyRule{} // rules of the other bindings, by namespace
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
		if ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{adminRule}); !ok {
			rest[g.Of] = append(rest[g.Of], rules...)
			continue
		}
		says = append(says, describeAdminGrant(g, a, len(says) > 0))
		if g.Account == "" && !g.Bootstrap() {
			fixes = append(
				fixes, g.Show(e.Kubectl())+"    # the binding applies to every ServiceAccount of namespace "+a.Namespace,
			)
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

// describeAdminGrant describes a binding that grants all permissions to an account, and the namespace of these
// permissions. If again is true, an earlier description has already named the account.
func describeAdminGrant(g check.Grant, a check.Account, again bool) string {
	binding, where := "ClusterRoleBinding "+g.Binding, ""
	if g.Of != "" {
		binding, where = "RoleBinding "+g.Of+"/"+g.Binding, " in namespace "+clean.Name(g.Of)
	}
	who := "ServiceAccount " + a.Namespace + "/" + a.Name
	if again {
		who = "the same ServiceAccount"
	}
	ref := g.RoleRef()
	return fmt.Sprintf("%s to %s grants %s all permissions%s",
		clean.Name(binding), clean.Name(ref.Kind+" "+ref.Name), who, where)
}

// missingGrants returns the commands that grant the permissions that p requires but rules do not grant. It returns ""
// if rules grant all of them. The keys of rules are namespaces, or "" for cluster-wide rules.
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

// endpointRightsFix returns the command that allows the provisioner to write the Endpoints that it uses for leader
// election.
func endpointRightsFix(ctx context.Context, e steps.Env, p *provisioner, account string) string {
	if by, err := p.made(ctx, e); err == nil && by != "" {
		return e.ApplyStep("nfs")
	}
	return fmt.Sprintf("%[1]s -n %[3]s create role %[2]s-leader --resource=endpoints "+
		"--verb=get,list,watch,create,update,patch\n"+
		"%[1]s -n %[3]s create rolebinding %[2]s-leader --role=%[2]s-leader --serviceaccount=%[3]s:%[4]s",
		e.Kubectl(), p.Name, p.Namespace, account)
}

// grantAll reports whether rules grant all permissions in rights. The keys of rules are namespaces, or "" for
// cluster-wide rules.
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
