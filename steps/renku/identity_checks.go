package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

func identityChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "service-account", Title: "the ServiceAccount is there", On: steps.Remote, Mend: "service-account", Needs: []string{"namespace"},
			Why: "it is who Renku is on this cluster",
			See: []string{page},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				name := sessionsNamespace(e) + "/" + identityName(e)
				return check.Exists(ctx, e.Cluster, check.ServiceAccounts, sessionsNamespace(e), identityName(e), "ServiceAccount "+name, "")
			},
		},
		{
			Name: "role-binding", Title: "a RoleBinding gives it a role in the sessions' namespace", On: steps.Remote, Mend: "role", Needs: []string{"namespace"},
			Why: "the published guide leaves the subject's namespace to be filled in: a binding of another namespace's account grants nothing",
			See: []string{page},
			Run: roleBinding,
		},
		{
			Name: "role-rules", Title: "its roles grant all that Renku does", On: steps.Remote, Mend: "role", Needs: []string{"role-binding"},
			Why: "Renku turns a 403 of the remote cluster into HTTP 500, without a word of what was missing. The published guide's Role is no longer what Renku's own services have, as it says it is",
			See: []string{"SwissDataScienceCenter/renku: helm-chart/renku/templates/data-service/rbac.yaml"},
			Run: roleComplete,
		},
		{
			Name: "priorityclasses-binding", Title: "it may list priority classes", On: steps.Remote, Mend: "priorityclasses-role", Needs: []string{"signed-in"},
			Why: "making a pool with a quota lists them; they are cluster-wide, so the published guide's Role can't grant it, and the pool ends in HTTP 500. That the class was made by hand, as the guide has it, does not help",
			See: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/db.py (create_quota)"},
			Run: clusterBinding,
		},
		{
			Name: "token-secret", Title: "the token Secret is filled", On: steps.Remote, Mend: "token", Needs: []string{"service-account"}, Within: 30 * time.Second,
			Why: "Kubernetes puts the token there; the controller deletes a Secret whose ServiceAccount is not there",
			See: []string{page},
			Run: tokenSecret,
		},
	}
}

// isAccount tells whether a subject is the identity; astray, whether it bears
// its name in another namespace. A RoleBinding's subject without a namespace
// means none at all for a ServiceAccount.
func isAccount(e steps.Env, s rbacv1.Subject) (is, astray bool) {
	if s.Kind == rbacv1.UserKind && s.Name == userName(e) {
		return true, false
	}
	if s.Kind != rbacv1.ServiceAccountKind || s.Name != identityName(e) {
		return false, false
	}
	return s.Namespace == sessionsNamespace(e), s.Namespace != sessionsNamespace(e)
}

// bindings are the RoleBindings of the sessions' namespace that name the
// identity, and those that name its namesake elsewhere.
func bindings(ctx context.Context, e steps.Env) (of, astray []*rbacv1.RoleBinding, err error) {
	all, err := check.List[rbacv1.RoleBinding](ctx, e.Cluster, check.RoleBindings, sessionsNamespace(e), cluster.Selector{})
	if err != nil {
		return nil, nil, err
	}
	for _, b := range all {
		for _, s := range b.Subjects {
			is, off := isAccount(e, s)
			if is {
				of = append(of, b)
			}
			if off {
				astray = append(astray, b)
			}
		}
	}
	return of, astray, nil
}

func roleBinding(ctx context.Context, e steps.Env) steps.Result {
	of, astray, err := bindings(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	name := sessionsNamespace(e) + "/" + identityName(e)
	if len(of) > 0 {
		return steps.Passed("RoleBinding %s names %s", of[0].Name, name)
	}
	if len(astray) > 0 {
		return steps.Failed(fmt.Sprintf("RoleBinding %s names a ServiceAccount %s of another namespace, not %s", astray[0].Name, identityName(e), name), "")
	}
	return steps.Undone(fmt.Sprintf("there is no RoleBinding %s, and no other names that ServiceAccount", name))
}

func roleComplete(ctx context.Context, e steps.Env) steps.Result {
	of, _, err := bindings(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	var granted []rbacv1.PolicyRule
	var names []string
	for _, b := range of {
		rules, err := check.RulesOf(ctx, e.Cluster, b.RoleRef, b.Namespace)
		if apierrors.IsNotFound(err) {
			names = append(names, b.RoleRef.Kind+" "+b.RoleRef.Name+" (which is not there)")
			continue
		}
		if err != nil {
			return steps.Unseen(err)
		}
		granted = append(granted, rules...)
		names = append(names, b.RoleRef.Kind+" "+b.RoleRef.Name)
	}
	if ok, lacking := validation.Covers(granted, roleRules(e)); !ok {
		var words []string
		for _, r := range lacking {
			words = append(words, strings.Join(r.Verbs, ",")+" "+strings.Join(r.Resources, ","))
		}
		return steps.Failed(fmt.Sprintf("%s lacks: %s", strings.Join(names, ", "), strings.Join(words, "; ")), "")
	}
	return steps.Passed("%s covers all %d rules", strings.Join(names, ", "), len(roleRules(e)))
}

func clusterBinding(ctx context.Context, e steps.Env) steps.Result {
	all, err := check.List[rbacv1.ClusterRoleBinding](ctx, e.Cluster, check.ClusterRoleBindings, "", cluster.Selector{})
	if err != nil {
		return steps.Unseen(err)
	}
	var granted []rbacv1.PolicyRule
	var names []string
	for _, b := range all {
		if !slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { is, _ := isAccount(e, s); return is }) {
			continue
		}
		rules, err := check.RulesOf(ctx, e.Cluster, b.RoleRef, "")
		if err != nil && !apierrors.IsNotFound(err) {
			return steps.Unseen(err)
		}
		granted = append(granted, rules...)
		names = append(names, b.Name)
	}
	need := clusterRules(e)
	// A list by name is all that Renku does, so a rule by names is enough.
	named := make([]rbacv1.PolicyRule, len(need))
	copy(named, need)
	named[0].ResourceNames = e.Answers.List("pools.quotas")
	if ok, _ := validation.Covers(granted, named); !ok {
		if len(names) == 0 {
			return steps.Undone(fmt.Sprintf("no ClusterRoleBinding names ServiceAccount %s/%s", sessionsNamespace(e), identityName(e)))
		}
		return steps.Failed("ClusterRoleBinding "+strings.Join(names, ", ")+" does not grant get and list of priorityclasses", "")
	}
	return steps.Passed("by ClusterRoleBinding %s", strings.Join(names, ", "))
}

func tokenSecret(ctx context.Context, e steps.Env) steps.Result {
	ns, name := sessionsNamespace(e), e.Answers.Text("identity.token-secret")
	s, err := e.Cluster.Secret(ctx, ns, name)
	if err != nil {
		return check.Missing(err, "Secret "+ns+"/"+name, "")
	}
	const account = "kubernetes.io/service-account.name"
	remake := e.Kubectl() + " -n " + ns + " delete secret " + name + "    # then " + again(e, "identity")
	switch {
	case s.Type != "kubernetes.io/service-account-token":
		return steps.Failed(fmt.Sprintf("Secret %s/%s has type %s: nothing fills it", ns, name, s.Type), remake)
	case s.Annotations[account] != identityName(e):
		return steps.Failed(fmt.Sprintf("Secret %s/%s is of ServiceAccount %q, not %q", ns, name, s.Annotations[account], identityName(e)), remake)
	}
	for _, key := range []string{"token", "ca.crt", "namespace"} {
		if s.Keys[key] == 0 {
			return steps.Waits(s.Created, "Secret %s/%s has no %s yet", ns, name, key).Or("is the controller manager running? " + e.Kubectl() + " -n kube-system get pods -l component=kube-controller-manager")
		}
	}
	return steps.Passed("Secret %s/%s holds token, ca.crt and namespace", ns, name)
}
