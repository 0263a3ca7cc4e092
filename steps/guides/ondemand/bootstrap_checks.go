package ondemand

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

func bootstrapChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "namespace", Title: "The namespace ondemand exists", On: steps.Remote, FixedBy: "namespace",
			Needs:      []string{"signed-in"},
			Why:        "The namespace contains the hooks' ServiceAccount and its tokens.",
			References: []string{rolesSource},
			Run:        func(ctx context.Context, e steps.Env) steps.Result { return check.NamespaceActive(ctx, e, namespace) },
		},
		{
			Name: "service-account", Title: "The ServiceAccount exists", On: steps.Remote, FixedBy: "service-account",
			Needs:      []string{"namespace"},
			Why:        "Root on the web node authenticates to the cluster as this ServiceAccount.",
			References: []string{rolesSource},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				name := namespace + "/" + account
				return check.Exists(ctx, e.Cluster, check.ServiceAccounts, namespace, account, "ServiceAccount "+name, "")
			},
		},
		roleCheck("hooks-role", "ClusterRole ondemand grants what the hooks need", account,
			"If a rule is missing, the hook fails, and its error goes only to syslog."),
		roleCheck("initializer-role", "ClusterRole ood-initializer grants what init containers need", initializer,
			"Init containers of an app need this role to write the app's Secret and ConfigMap."),
		roleCheck("users-role", "ClusterRole ood-user grants what users need", userRole,
			"Users need this role to submit, view and delete their apps."),
		{
			Name: "role-bound", Title: "The ServiceAccount is bound to its role in all namespaces", On: steps.Remote,
			FixedBy: "cluster-roles", Needs: []string{"hooks-role"},
			Why: "The hook creates namespaces, which requires a ClusterRoleBinding. The metadata.namespace in upstream's file " +
				"does not restrict this binding.",
			References: []string{rolesSource},
			Run:        hookRoleBound,
		},
		{
			Name: "grantable-permissions", Title: "The ServiceAccount has all permissions that it grants", On: steps.Remote,
			FixedBy: "cluster-roles", Needs: []string{"role-bound"},
			Why: "Kubernetes forbids granting permissions that the grantor does not have: a verb added to ood-user must also " +
				"be in ondemand, or every login fails.",
			References: []string{
				rolesSource,
				"https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping",
			},
			Run: func(ctx context.Context, e steps.Env) steps.Result { return holdsAll(ctx, e, userRole, initializer) },
		},
		{
			Name: "account-permissions", Title: "The ServiceAccount has only upstream's permissions", On: steps.Remote,
			Needs: []string{"role-bound"},
			Why: "Users log in to the machine that stores the token. Upstream's rules cover all Secrets; cluster-admin, which " +
				"some sites bind for the renewal, adds the rest.",
			References: []string{rolesSource},
			Run:        accountPowers,
		},
	}
}

// roleCheck returns a check that compares the given ClusterRole with the asset.
func roleCheck(name, title, role, why string) steps.Check {
	return steps.Check{
		Name: name, Title: title, On: steps.Remote, FixedBy: "cluster-roles", Needs: []string{"signed-in"},
		Why: why, References: []string{rolesSource},
		Run: func(ctx context.Context, e steps.Env) steps.Result { return roleExists(ctx, e, role) },
	}
}

func roleExists(ctx context.Context, e steps.Env, role string) steps.Result {
	want, err := meant(e, rolesFile, role)
	if err != nil {
		return steps.Errored(err)
	}
	have, err := check.Get[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", role)
	if err != nil {
		return check.Missing(err, "ClusterRole "+role, "")
	}
	if ok, lacking := validation.Covers(have.Rules, want); !ok {
		return steps.Failed(fmt.Sprintf("ClusterRole %s is missing rules: %s", role, ruleWords(lacking)), "")
	}
	if role == account { // the check account-permissions reports additional rules
		return steps.Passed("ClusterRole %s has all %d rules", role, len(want))
	}
	if ok, more := validation.Covers(want, have.Rules); !ok {
		return steps.Warned(
			fmt.Sprintf(
				"ClusterRole %s grants users more in their namespaces than upstream's role does: %s", role, ruleWords(more),
			),
			e.Kubectl()+" get clusterrole "+role+" -o yaml    # if the extra rules are intended, ignore this warning",
		)
	}
	return steps.Passed("ClusterRole %s has all %d rules", role, len(want))
}

func hookRoleBound(ctx context.Context, e steps.Env) steps.Result {
	all, err := granted(ctx, e, "")
	if err != nil {
		return steps.Errored(err)
	}
	want, err := meant(e, rolesFile, account)
	if err != nil {
		return steps.Errored(err)
	}
	all = slices.DeleteFunc(all, func(g check.Binding) bool {
		everyone, _ := validation.Covers(check.EveryAccount, g.Rules)
		return everyone && !g.Missing
	})
	var names, gone []string
	for _, g := range all {
		if names = append(names, g.String()); g.Missing {
			gone = append(gone, g.String()+" names "+g.RoleName()+", which does not exist")
		}
	}
	switch ok, lacking := validation.Covers(check.RulesIn(all), want); {
	case len(all) == 0:
		return steps.Undone(fmt.Sprintf("no ClusterRoleBinding binds ServiceAccount %s/%s to a role", namespace, account))
	case !ok && len(gone) > 0:
		return steps.Failed(strings.Join(gone, "; "), "")
	case !ok:
		return steps.Failed(
			fmt.Sprintf(
				"ServiceAccount %s/%s, bound by %s, is missing rules: %s", namespace, account, strings.Join(names, ", "),
				ruleWords(lacking),
			),
			"",
		)
	}
	return steps.Passed("bound by %s", strings.Join(names, ", "))
}

// holdsAll verifies that the API server allows the hook to bind the given ClusterRoles. For each role, the
// ServiceAccount must have all rules of the role, or the permission to bind the role.
func holdsAll(ctx context.Context, e steps.Env, roles ...string) steps.Result {
	all, err := granted(ctx, e, "")
	if err != nil {
		return steps.Errored(err)
	}
	held := check.RulesIn(all)
	for _, role := range roles {
		r, err := check.Get[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", role)
		if err != nil {
			return check.Missing(err, "ClusterRole "+role, "")
		}
		if ok, lacking := validation.Covers(held, r.Rules); !ok {
			if ok, _ := validation.Covers(held, mayBind(role)); ok {
				continue
			}
			return steps.Failed(
				fmt.Sprintf(
					"ClusterRole %s, which the hook binds, has rules that ServiceAccount %s/%s does not have: %s. The API server "+
						"rejects the hook's RoleBinding", role,
					namespace, account, ruleWords(lacking),
				),
				narrowFix(e, role),
			)
		}
	}
	return steps.Passed("the ServiceAccount has all rules of %s", strings.Join(roles, ", "))
}

// mayBind returns the rule that allows an account to bind role without having the permissions in it.
func mayBind(role string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{role},
		Verbs: []string{"bind"},
	}}
}

// narrowFix returns the fix for a role with rules that the hooks do not have and therefore cannot grant. The first
// command restores the original rules. The other commands are an alternative that allows the hooks to bind the role. No
// command grants the rules to the hooks, because the rules would then apply in all namespaces.
func narrowFix(e steps.Env, role string) string {
	narrow, name := e.ApplyStep("bootstrap")+" --take-over    # restores upstream's rules", account+"-binds-"+role
	if role == reaperName {
		narrow = helmUpgrade(e, reaperName, reaperName, reaperName, reaperVersion, reaperConfig()) +
			"    # restores the chart's rules; with Helm 4 add --force-conflicts"
	}
	return fmt.Sprintf(
		"%s\n# if the rules are intended, allow the hooks to bind the role: %s create clusterrole %s --verb=bind "+
			"--resource=clusterroles.rbac.authorization.k8s.io --resource-name=%s && %s create clusterrolebinding %s "+
			"--clusterrole=%s --serviceaccount=%s:%s",
		narrow, e.Kubectl(), name, role, e.Kubectl(), name, name, namespace, account,
	)
}

func accountPowers(ctx context.Context, e steps.Env) steps.Result {
	want, err := meant(e, rolesFile, account)
	if err != nil {
		return steps.Errored(err)
	}
	renew, err := meant(e, renewFile, renewRole)
	if err != nil {
		return steps.Errored(err)
	}
	everywhere, err := granted(ctx, e, "")
	if err != nil {
		return steps.Errored(err)
	}
	inside, err := granted(ctx, e, namespace)
	if err != nil {
		return steps.Errored(err)
	}
	var words []string
	add := func(grants []check.Binding, allowed []rbacv1.PolicyRule) {
		for _, g := range grants {
			if ok, more := validation.Covers(allowed, g.Rules); !ok {
				words = append(words, g.String()+" ("+g.RoleName()+"): "+ruleWords(more))
			}
		}
	}
	want = slices.Concat(want, check.EveryAccount)
	add(everywhere, want)
	add(inside, slices.Concat(want, renew, []rbacv1.PolicyRule{check.PullsImages}))
	if len(words) > 0 {
		return steps.Warned("the ServiceAccount has permissions beyond upstream's, granted by "+strings.Join(words, "; "),
			e.Kubectl()+" get clusterrolebindings,rolebindings -A -o wide | grep "+namespace+"/"+account+
				"    # delete the unintended binding, or narrow the role")
	}
	return steps.Passed("the ServiceAccount has upstream's rules and no others")
}
