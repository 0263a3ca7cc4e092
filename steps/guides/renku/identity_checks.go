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
			Name: "service-account", Title: "The ServiceAccount exists", On: steps.Remote, FixedBy: "service-account",
			Needs:      []string{"namespace"},
			Why:        "Renku authenticates to this cluster as this ServiceAccount.",
			References: []string{page},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				name := sessionsNamespace(e) + "/" + identityName(e)
				return check.Exists(
					ctx, e.Cluster, check.ServiceAccounts, sessionsNamespace(e), identityName(e), "ServiceAccount "+name, "",
				)
			},
		},
		{
			Name: "role-binding", Title: "A RoleBinding gives the account a role in the namespace", On: steps.Remote,
			FixedBy: "role", Needs: []string{"namespace"},
			Why: "The published guide leaves the subject's namespace blank, and a binding to another namespace's account " +
				"grants nothing.",
			References: []string{page},
			Run:        roleBinding,
		},
		{
			Name: "role-rules", Title: "The account's roles grant all permissions that Renku needs", On: steps.Remote,
			FixedBy: "role",
			Needs:   []string{"role-binding"},
			Why: "Renku turns the remote cluster's 403 into HTTP 500 without naming the permission. The published " +
				"guide's Role no longer matches Renku's own Role.",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/templates/data-service/rbac.yaml"},
			Run:        roleComplete,
		},
		{
			Name: "priorityclasses-binding", Title: "The account can list PriorityClasses", On: steps.Remote,
			FixedBy: "priorityclasses-role", Needs: []string{"signed-in"},
			Why: "Without this permission, creating a pool with a quota fails with HTTP 500, even if the PriorityClass " +
				"exists. The published guide's Role cannot grant it.",
			References: []string{
				"SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/db.py (create_quota)",
			},
			Run: clusterBinding,
		},
		{
			Name: "token-secret", Title: "The token Secret contains a token", On: steps.Remote, FixedBy: "token",
			Needs: []string{"service-account"}, Timeout: 30 * time.Second,
			Why: "Kubernetes writes the token into the Secret, and deletes the Secret if its ServiceAccount " +
				"does not exist.",
			References: []string{page},
			Run:        tokenSecretFilled,
		},
	}
}

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
		return steps.Passed("RoleBinding %s names ServiceAccount %s", of[0].Name, name)
	}
	astray, err := check.Bindings(ctx, e.Cluster, account.Namespace, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == account.Name && s.Namespace != account.Namespace
	})
	if err != nil {
		return steps.Errored(err)
	}
	if len(astray) > 0 {
		const found = "RoleBinding %s names ServiceAccount %s of another namespace, not %s"
		return steps.Failed(fmt.Sprintf(found, astray[0].Name, account.Name, name), "")
	}
	return steps.Undone(
		fmt.Sprintf("RoleBinding %s does not exist, and no other RoleBinding names that ServiceAccount", name),
	)
}

func roleComplete(ctx context.Context, e steps.Env) steps.Result {
	of, err := check.Granted(ctx, e.Cluster, sessionsNamespace(e), identityAccount(e).Is)
	if err != nil {
		return steps.Errored(err)
	}
	return check.Covers(of, roleRules(e))
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
	// Renku lists PriorityClasses only by name, so a rule with resourceNames is enough.
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
			"ClusterRoleBinding "+strings.Join(names, ", ")+" does not grant get and list on priorityclasses", "",
		)
	}
	return steps.Passed("granted by ClusterRoleBinding %s", strings.Join(names, ", "))
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
	return steps.Passed("Secret %s/%s contains token, ca.crt and namespace", ns, name)
}
