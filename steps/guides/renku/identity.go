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
		Why: "All of Renku's services act on the remote cluster as one ServiceAccount, with a token that does not expire.",
		Ask: identityQuestions(),
		Facts: []steps.Fact{
			{
				Name: "own-token-secret", Title: "the token Secret that the cluster made by itself", On: steps.Remote,
				Learn: ownTokenSecret,
			},
			{
				Name: "serves-policies", Title: "whether the cluster serves ValidatingAdmissionPolicies", On: steps.Remote,
				Learn: check.ServesFact(check.ValidatingPolicies),
			},
		},
		Actions: []steps.Action{
			accountPolicies(), // created before the token, and undone after it
			{
				Name: "service-account", Title: "Make the ServiceAccount", On: steps.Remote, Needs: []string{"namespace"},
				Doer: action.Manifest{File: "service-account.yaml"},
			},
			{
				Name: "role", Title: "Grant it what Renku does in the sessions' namespace", On: steps.Remote,
				Needs: []string{"namespace"},
				Doer: action.Manifest{File: "role.yaml", Values: action.Values{
					"rules": rules(func(e steps.Env) []any { return asYAML(roleRules(e)) }),
				}},
			},
			{
				Name: "priorityclasses-role", Title: "Let it list priority classes", On: steps.Remote,
				Doer: action.Manifest{File: "priorityclasses-role.yaml", Values: action.Values{
					"cluster-role": func(_ context.Context, e steps.Env) (any, error) { return clusterRoleName(e), nil },
					"rules":        rules(func(e steps.Env) []any { return asYAML(clusterRules(e)) }),
				}},
			},
			{
				Name: "delete-class-role", Title: "Let it delete the pools' priority classes", On: steps.Remote,
				Doer: action.Manifest{File: "delete-class-role.yaml", Each: quotaIDs},
			},
			{
				Name: "token", Title: "Have a token made", On: steps.Remote, Needs: []string{"service-account"},
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
			Key: "identity.name", Title: "Name of the ServiceAccount", Kind: steps.Name, On: steps.Remote,
			Adopt:   adoptIdentity,
			Help:    "Its Role and RoleBinding carry the same name.",
			Default: func(e steps.Env) (any, string) { return "renku-" + e.Link, "the link's name" },
		},
		{
			Key: "identity.token-secret", Title: "Name of its token Secret", Kind: steps.Name, On: steps.Remote,
			Adopt: adoptTokenSecret,
			Help:  "Clusters before 1.24 made one by themselves; newer ones fill one that is asked for.",
			Default: func(e steps.Env) (any, string) {
				if name, err := e.Own.Text("own-token-secret"); err == nil {
					return name, "the cluster made it by itself"
				}
				return e.Answers.Text("identity.name") + "-token", "the ServiceAccount's name"
			},
		},
		policiesQuestion(),
		{
			Key: "renku.tracking", Title: "Renku tracks resource requests", Kind: steps.YesNo,
			Adopt: adoptTracking,
			Help: "dataService.dataTasks.enableResourceRequestTracking in Renku's values. Needs volumes and nodes " +
				"to be listed.",
			Default: steps.Fixed(false, "the chart's default"),
		},
		{
			Key: "renku.reservations", Title: "Renku reserves capacity on this cluster", Kind: steps.YesNo,
			Help:    "Capacity reservations on classes of this cluster's pools. Needs Deployments to be made.",
			Default: steps.Fixed(false, "most sites have none"),
		},
	}
}

func identityName(e steps.Env) string { return e.Answers.Text("identity.name") }

// clusterRoleName contains the namespace because a ClusterRole's name is cluster-wide.
func clusterRoleName(e steps.Env) string {
	return sessionsNamespace(e) + "-" + identityName(e) + "-priorityclasses"
}

// userName is the ServiceAccount's user name in the API server.
func userName(e steps.Env) string { return identityAccount(e).Username() }

// ownTokenSecret returns the token Secret that a cluster before 1.24 created automatically and
// listed in the ServiceAccount.
func ownTokenSecret(ctx context.Context, e steps.Env) (any, error) {
	sa, err := check.Get[corev1.ServiceAccount](
		ctx, e.Cluster, check.ServiceAccounts, sessionsNamespace(e), identityName(e),
	)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("there is no ServiceAccount %s yet", identityName(e))
	}
	if err != nil {
		return nil, err
	}
	for _, s := range sa.Secrets {
		if strings.HasPrefix(s.Name, sa.Name+"-token-") {
			return s.Name, nil
		}
	}
	return nil, steps.Absent("the cluster made no token Secret by itself")
}

func ownsTokenSecret(e steps.Env) bool {
	name, err := e.Own.Text("own-token-secret")
	return err != nil || name != e.Answers.Text("identity.token-secret")
}
