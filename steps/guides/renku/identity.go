package renku

import (
	"context"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func identity() steps.Step {
	rules := func(of func(steps.Env) []any) func(context.Context, steps.Env) (any, error) {
		return func(_ context.Context, e steps.Env) (any, error) { return of(e), nil }
	}
	return steps.Step{
		Name: "identity", Title: "Identity",
		Map: steps.MapRow{Remote: "ServiceAccount, token"},
		Why: "All of Renku's services act on the remote cluster as one ServiceAccount with a token that does not expire.",
		Ask: identityQuestions(),
		Facts: []steps.Fact{
			{
				Name: "own-token-secret", Title: "the token Secret that the cluster created automatically", On: steps.Remote,
				Learn: ownTokenSecret,
			},
			{
				Name: "serves-policies", Title: "whether the cluster serves ValidatingAdmissionPolicies", On: steps.Remote,
				Learn: check.ServesFact(check.ValidatingPolicies),
			},
		},
		Actions: []steps.Action{
			accountPolicies(), // created before the token and removed after the token
			{
				Name: "service-account", Title: "Create the ServiceAccount", On: steps.Remote, Needs: []string{"namespace"},
				Doer: action.Manifest{File: "service-account.yaml"},
			},
			{
				Name: "role", Title: "Grant Renku's permissions in the session namespace", On: steps.Remote,
				Needs: []string{"namespace"},
				Doer: action.Manifest{File: "role.yaml", Values: action.Values{
					"rules": rules(func(e steps.Env) []any { return asYAML(roleRules(e)) }),
				}},
			},
			{
				Name: "priorityclasses-role", Title: "Grant permission to list PriorityClasses", On: steps.Remote,
				Doer: action.Manifest{File: "priorityclasses-role.yaml", Values: action.Values{
					"cluster-role": func(_ context.Context, e steps.Env) (any, error) { return clusterRoleName(e), nil },
					"rules":        rules(func(e steps.Env) []any { return asYAML(clusterRules(e)) }),
				}},
			},
			{
				Name: "delete-class-role", Title: "Grant permission to delete the pools' PriorityClasses", On: steps.Remote,
				Doer: action.Manifest{File: "delete-class-role.yaml", Each: quotaIDs},
			},
			{
				Name: "token", Title: "Create the token Secret", On: steps.Remote, Needs: []string{"service-account"},
				When: ownsTokenSecret,
				Doer: action.Manifest{File: "token.yaml"},
			},
		},
		Checks: identityChecks(),
	}
}

func identityQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "identity.name", Title: "ServiceAccount name", Kind: steps.Name, On: steps.Remote,
			Adopt:   adoptIdentity,
			Help:    "The ServiceAccount that Renku authenticates as. Its Role and RoleBinding have the same name.",
			Default: func(e steps.Env) (any, string) { return "renku-" + e.Link, "from the link's name" },
		},
		{
			Key: "identity.token-secret", Title: "Token Secret name", Kind: steps.Name, On: steps.Remote,
			Adopt: adoptTokenSecret,
			Help: "Kubernetes before 1.24 created this Secret automatically. Later versions fill the Secret that " +
				"carrick creates.",
			Default: func(e steps.Env) (any, string) {
				if name, err := e.Own.Text("own-token-secret"); err == nil {
					return name, "the Secret that the cluster created automatically"
				}
				return e.Answers.Text("identity.name") + "-token", "from the ServiceAccount's name"
			},
		},
		policiesQuestion(),
		{
			Key: "renku.tracking", Title: "Resource request tracking in Renku", Kind: steps.YesNo,
			Adopt: adoptTracking,
			Help: "Whether dataService.dataTasks.enableResourceRequestTracking is true in Renku's values. Tracking " +
				"requires permission to list volumes and nodes.",
			Default: steps.Fixed(false, "the chart's default"),
		},
		{
			Key: "renku.reservations", Title: "Capacity reservations on the remote cluster", Kind: steps.YesNo,
			Help: "Whether Renku reserves capacity for the resource classes of this cluster's pools. Reservations require " +
				"permission to create Deployments.",
			Default: steps.Fixed(false, "the default"),
		},
	}
}

func identityName(e steps.Env) string { return e.Answers.Text("identity.name") }

// clusterRoleName includes the session namespace, because ClusterRoles are cluster-wide.
func clusterRoleName(e steps.Env) string {
	return sessionsNamespace(e) + "-" + identityName(e) + "-priorityclasses"
}

func userName(e steps.Env) string { return identityAccount(e).Username() }

// ownTokenSecret returns the name of the token Secret that Kubernetes before 1.24 created
// automatically and listed in the ServiceAccount.
func ownTokenSecret(ctx context.Context, e steps.Env) (any, error) {
	sa, err := check.Get[corev1.ServiceAccount](
		ctx, e.Cluster, check.ServiceAccounts, sessionsNamespace(e), identityName(e),
	)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("ServiceAccount %s does not exist yet", identityName(e))
	}
	if err != nil {
		return nil, err
	}
	for _, s := range sa.Secrets {
		if strings.HasPrefix(s.Name, sa.Name+"-token-") {
			return s.Name, nil
		}
	}
	return nil, steps.Absent("the cluster did not create a token Secret automatically")
}

func ownsTokenSecret(e steps.Env) bool {
	name, err := e.Own.Text("own-token-secret")
	return err != nil || name != e.Answers.Text("identity.token-secret")
}
