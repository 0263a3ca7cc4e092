package renku

import (
	"context"
	"fmt"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/check"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

func identityChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "service-account", Title: "the ServiceAccount is there", On: steps.Remote, FixedBy: "service-account",
			Needs:      []string{"namespace"},
			Why:        "it is who Renku is on this cluster",
			References: []string{page},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				name := sessionsNamespace(e) + "/" + identityName(e)
				return check.Exists(
					ctx, e.Cluster, check.ServiceAccounts, sessionsNamespace(e), identityName(e), "ServiceAccount "+name, "",
				)
			},
		},
		{
			Name: "role-binding", Title: "a RoleBinding gives it a role in the sessions' namespace", On: steps.Remote,
			FixedBy: "role", Needs: []string{"namespace"},
			Why: "the published guide leaves the subject's namespace to be filled in: a binding of another namespace's " +
				"account grants nothing",
			References: []string{page},
			Run:        roleBinding,
		},
		{
			Name: "role-rules", Title: "its roles grant all that Renku does", On: steps.Remote, FixedBy: "role",
			Needs: []string{"role-binding"},
			Why: "Renku turns a 403 of the remote cluster into HTTP 500, without a word of what was missing. The " +
				"published guide's Role is no longer what Renku's own services have, as it says it is",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/templates/data-service/rbac.yaml"},
			Run:        roleComplete,
		},
		{
			Name: "priorityclasses-binding", Title: "it may list priority classes", On: steps.Remote,
			FixedBy: "priorityclasses-role", Needs: []string{"signed-in"},
			Why: "making a pool with a quota lists them; they are cluster-wide, so the published guide's Role can't " +
				"grant it, and the pool ends in HTTP 500. That the class was made by hand, as the guide has it, does not help",
			References: []string{
				"SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/db.py (create_quota)",
			},
			Run: clusterBinding,
		},
		{
			Name: "token-secret", Title: "the token Secret is filled", On: steps.Remote, FixedBy: "token",
			Needs: []string{"service-account"}, Timeout: 30 * time.Second,
			Why:        "Kubernetes puts the token there; the controller deletes a Secret whose ServiceAccount is not there",
			References: []string{page},
			Run:        tokenSecretFilled,
		},
	}
}

// identityAccount is the ServiceAccount that Renku authenticates as.
func identityAccount(e steps.Env) check.Account {
	return check.Account{Namespace: sessionsNamespace(e), Name: identityName(e)}
}

func roleBinding(ctx context.Context, e steps.Env) steps.Result {
	account := identityAccount(e)
	of, err := check.Bindings(ctx, e.Cluster, account.Namespace, account.Is)
	if err != nil {
		return steps.Errored(err)
	}
	name := account.Namespace + "/" + account.Name
	if len(of) > 0 {
		return steps.Passed("RoleBinding %s names %s", of[0].Name, name)
	}
	astray, err := check.Bindings(ctx, e.Cluster, account.Namespace, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == account.Name && s.Namespace != account.Namespace
	})
	if err != nil {
		return steps.Errored(err)
	}
	if len(astray) > 0 {
		const found = "RoleBinding %s names a ServiceAccount %s of another namespace, not %s"
		return steps.Failed(fmt.Sprintf(found, astray[0].Name, account.Name, name), "")
	}
	return steps.Undone(fmt.Sprintf("there is no RoleBinding %s, and no other names that ServiceAccount", name))
}

func roleComplete(ctx context.Context, e steps.Env) steps.Result {
	of, err := check.Granted(ctx, e.Cluster, sessionsNamespace(e), identityAccount(e).Is)
	if err != nil {
		return steps.Errored(err)
	}
	var names []string
	for _, b := range of {
		name := b.RoleName()
		if b.Missing {
			name += " (which is not there)"
		}
		names = append(names, name)
	}
	if ok, lacking := validation.Covers(check.RulesIn(of), roleRules(e)); !ok {
		words := check.RuleSummaries(lacking)
		return steps.Failed(fmt.Sprintf("%s lacks: %s", strings.Join(names, ", "), strings.Join(words, "; ")), "")
	}
	return steps.Passed("%s covers all %d rules", strings.Join(names, ", "), len(roleRules(e)))
}

func clusterBinding(ctx context.Context, e steps.Env) steps.Result {
	of, err := check.Granted(ctx, e.Cluster, "", identityAccount(e).Is)
	if err != nil {
		return steps.Errored(err)
	}
	var names []string
	for _, b := range of {
		names = append(names, b.Name)
	}
	need := clusterRules(e)
	// Renku only lists by name, so a rule with resource names is enough.
	named := make([]rbacv1.PolicyRule, len(need))
	copy(named, need)
	named[0].ResourceNames = e.Answers.List("pools.quotas")
	if ok, _ := validation.Covers(check.RulesIn(of), named); !ok {
		if len(names) == 0 {
			return steps.Undone(
				fmt.Sprintf("no ClusterRoleBinding names ServiceAccount %s/%s", sessionsNamespace(e), identityName(e)),
			)
		}
		return steps.Failed(
			"ClusterRoleBinding "+strings.Join(names, ", ")+" does not grant get and list of priorityclasses", "",
		)
	}
	return steps.Passed("by ClusterRoleBinding %s", strings.Join(names, ", "))
}

func tokenSecretFilled(ctx context.Context, e steps.Env) steps.Result {
	ns, name := sessionsNamespace(e), e.Answers.Text("identity.token-secret")
	s, err := e.Cluster.Secret(ctx, ns, name)
	if err != nil {
		return check.Missing(err, "Secret "+ns+"/"+name, "")
	}
	remake := e.Kubectl() + " -n " + ns + " delete secret " + name + "    # then " + e.ApplyStep("identity")
	if r := check.TokenSecret(e, s, identityName(e), remake, "token", "ca.crt", "namespace"); r.Status != steps.Pass {
		return r
	}
	return steps.Passed("Secret %s/%s holds token, ca.crt and namespace", ns, name)
}
