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
			Name: "namespace", Title: "the namespace ondemand is there", On: steps.Remote, FixedBy: "namespace",
			Needs:      []string{"signed-in"},
			Why:        "the hooks' ServiceAccount and its tokens live in it",
			References: []string{rolesSource},
			Run:        func(ctx context.Context, e steps.Env) steps.Result { return check.NamespaceActive(ctx, e, namespace) },
		},
		{
			Name: "service-account", Title: "the ServiceAccount is there", On: steps.Remote, FixedBy: "service-account",
			Needs:      []string{"namespace"},
			Why:        "it is who root on the web node is on this cluster",
			References: []string{rolesSource},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				name := namespace + "/" + account
				return check.Exists(ctx, e.Cluster, check.ServiceAccounts, namespace, account, "ServiceAccount "+name, "")
			},
		},
		roleCheck("role-of-hooks", "the ClusterRole ondemand grants what the hooks do", account,
			"where a rule is missing, the hook ends with an error that nobody sees: its output goes to syslog alone"),
		roleCheck("role-of-initializer", "the ClusterRole ood-initializer grants what apps do as they start", initializer,
			"init containers of an app write its Secret and its ConfigMap with it"),
		roleCheck("role-of-users", "the ClusterRole ood-user grants what users do", userRole,
			"apps are submitted, shown and ended with it"),
		{
			Name: "role-bound", Title: "the ServiceAccount is bound to its role in all namespaces", On: steps.Remote,
			FixedBy: "cluster-roles", Needs: []string{"role-of-hooks"},
			Why: "the hook makes namespaces, which takes a ClusterRoleBinding; metadata.namespace in upstream's file " +
				"does not narrow it",
			References: []string{rolesSource},
			Run:        hookRoleBound,
		},
		{
			Name: "may-grant", Title: "the ServiceAccount holds all that it grants to users", On: steps.Remote,
			FixedBy: "cluster-roles", Needs: []string{"role-bound"},
			Why: "Kubernetes lets nobody grant what they do not hold: who adds a verb to ood-user has to add it to " +
				"ondemand, too, else every login fails from then on",
			References: []string{
				rolesSource,
				"https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping",
			},
			Run: func(ctx context.Context, e steps.Env) steps.Result { return holdsAll(ctx, e, userRole, initializer) },
		},
		{
			Name: "account-powers", Title: "the ServiceAccount may do no more than upstream gives it", On: steps.Remote,
			Needs: []string{"role-bound"},
			Why: "its token lies on a machine that users log in to by a browser. Upstream's rules already hold every " +
				"Secret of the cluster; cluster-admin, which some sites bind because the renewal was forbidden, is all the rest",
			References: []string{rolesSource},
			Run:        accountPowers,
		},
	}
}

// roleCheck compares one ClusterRole with the asset's, rule by rule.
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
		return steps.Failed(fmt.Sprintf("ClusterRole %s lacks: %s", role, ruleWords(lacking)), "")
	}
	if role == account { // what it has beyond is told where all of its bindings are looked at
		return steps.Passed("ClusterRole %s covers all %d rules", role, len(want))
	}
	if ok, more := validation.Covers(want, have.Rules); !ok {
		return steps.Warned(
			fmt.Sprintf(
				"ClusterRole %s grants more than upstream's, to every user in their namespace: %s", role, ruleWords(more),
			),
			e.Kubectl()+" get clusterrole "+role+" -o yaml    # is it meant? Then nothing is to be done",
		)
	}
	return steps.Passed("ClusterRole %s covers all %d rules", role, len(want))
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
	var names, gone []string
	for _, g := range all {
		if names = append(names, g.String()); g.Missing {
			gone = append(gone, g.String()+" names "+g.RoleName()+", which is not there")
		}
	}
	switch ok, lacking := validation.Covers(check.RulesIn(all), want); {
	case len(all) == 0:
		return steps.Undone(fmt.Sprintf("no ClusterRoleBinding names ServiceAccount %s/%s", namespace, account))
	case !ok && len(gone) > 0:
		return steps.Failed(strings.Join(gone, "; "), "")
	case !ok:
		return steps.Failed(
			fmt.Sprintf(
				"what is bound to %s/%s (%s) lacks: %s", namespace, account, strings.Join(names, ", "), ruleWords(lacking),
			),
			"",
		)
	}
	return steps.Passed("by %s", strings.Join(names, ", "))
}

// holdsAll asserts that the hook may bind these ClusterRoles.
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
					"ClusterRole %s, which the hook binds, has what %s/%s does not hold: %s. The hook's RoleBinding is refused", role,
					namespace, account, ruleWords(lacking),
				),
				narrowFix(e, role),
			)
		}
	}
	return steps.Passed("it holds all of %s", strings.Join(roles, ", "))
}

// mayBind is the permission to bind a role, whatever it grants: its holder has none of that.
func mayBind(role string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{role},
		Verbs: []string{"bind"},
	}}
}

// narrowFix takes out of a role what the hooks can't grant, or lets them bind it where it is meant. They are not given
// the rules themselves: those would be theirs in all namespaces.
func narrowFix(e steps.Env, role string) string {
	narrow, name := e.ApplyStep("bootstrap")+" --take-over    # gives it upstream's rules back", account+"-binds-"+role
	if role == reaperName {
		narrow = helmUpgrade(e, reaperName, reaperName, reaperName, reaperVersion, reaperConfig()) +
			"    # gives it the chart's rules back; with Helm 4 add --force-conflicts"
	}
	return fmt.Sprintf("%s\n# are they meant? Then let the hooks bind it: %s create clusterrole %s --verb=bind "+
		"--resource=clusterroles.rbac.authorization.k8s.io --resource-name=%s && %s create clusterrolebinding %s "+
		"--clusterrole=%s "+
		"--serviceaccount=%s:%s", narrow, e.Kubectl(), name, role, e.Kubectl(), name, name, namespace, account)
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
		return steps.Warned("it may do more than upstream gives it, by "+strings.Join(words, "; "),
			e.Kubectl()+" get clusterrolebindings,rolebindings -A -o wide | grep "+namespace+"/"+account+
				"    # delete the binding that is not meant, or narrow the role")
	}
	return steps.Passed("upstream's rules and nothing beyond them")
}
