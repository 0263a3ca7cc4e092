package liqo

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/action"
)

// offloadingName is the only name that Liqo accepts (liqotech/liqo:
// pkg/webhooks/namespaceoffloading).
const offloadingName = "offloading"

func offloading() steps.Step {
	return steps.Step{
		Name: "offloading", Title: "Offloading", When: servesConsumer,
		Why: "A namespace of the consumer is extended to the provider. Pods that are in it already don't move: they get " +
			"the virtual node's toleration only when they are made.",
		Ask: offloadingQuestions(),
		Facts: []steps.Fact{
			{Name: "offloading", Title: "the NamespaceOffloading as it stands", On: steps.Local, Learn: offloadingFact},
		},
		Actions: []steps.Action{
			{
				Name: "offloaded-namespace", Title: "Make the namespace", On: steps.Local,
				Doer: action.Manifest{File: "offloaded-namespace.yaml"},
			},
			{
				Name: "offloading", Title: "Extend the namespace to the provider", On: steps.Local, Needs: []string{"virtual-node"},
				Doer: offloadingDoer{action.Manifest{File: "namespace-offloading.yaml", Values: action.Values{
					"selector":    clusterSelector,
					"remote-name": remoteName,
				}}},
			},
		},
		Checks: offloadingChecks(),
	}
}

func offloadingQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "offloading.namespace", Title: "Namespace to extend", Kind: steps.Namespace, NotFromPeer: true,
			Adopt:   adoptOffloaded,
			Help:    "Made if it is not there. Undo deletes it at the provider, with all that is in it there.",
			Default: steps.Fixed("demo", "the published guide"),
		},
		{
			Key: "offloading.pods", Title: "Where its pods may run", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: "LocalAndRemote", Title: "on both sides, as the scheduler likes"},
				{Value: "Remote", Title: "on the provider alone"},
				{Value: "Local", Title: "on the consumer alone: only its services are extended"},
			},
			Help:    "Where it is made stricter later, pods that run already stay where they are.",
			Default: asItExists("offloading", "pods", "LocalAndRemote", "the published guide"),
		},
		{
			Key: "offloading.mapping", Title: "How the namespace is called on the provider", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: "DefaultName", Title: "its name and the consumer's id: never taken"},
				{Value: "EnforceSameName", Title: "the same: fails where it is taken"},
				{Value: "SelectedName", Title: "a name of your choice"},
			},
			Help:    "It can't be changed later other than by undoing this step.",
			Default: asItExists("offloading", "mapping", "DefaultName", "the published guide"),
		},
		{
			Key: "offloading.remote-name", Title: "Name on the provider", Kind: steps.Namespace,
			Help:    "Must not be taken there.",
			When:    func(e steps.Env) bool { return e.Answers.Text("offloading.mapping") == "SelectedName" },
			Default: asItExists("offloading", "remote-name", nil, ""),
		},
		{
			Key: "offloading.clusters", Title: "Labels of the providers to extend it to", Kind: steps.Label, Many: true,
			Opt:   true,
			Adopt: adoptClusterSelector,
			Help:  "Of virtual nodes, such as " + remoteIDLabel + "=rome. Empty: all providers of this consumer.",
		},
	}
}

func offloadingFact(ctx context.Context, e steps.Env) (any, error) {
	o, err := e.Cluster.Get(ctx, namespaceOffloadings, e.Answers.Text("offloading.namespace"), offloadingName)
	if apierrors.IsNotFound(err) || errors.Is(err, failure.ErrNotServed) {
		return nil, steps.Absent("the namespace is not extended yet")
	}
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	set(m, "pods", text(o, "spec", "podOffloadingStrategy"))
	set(m, "mapping", text(o, "spec", "namespaceMappingStrategy"))
	set(m, "remote-name", text(o, "spec", "remoteNamespaceName"))
	return m, nil
}

// clusterSelector returns one term with all labels. Without labels the selector matches every
// provider.
func clusterSelector(_ context.Context, e steps.Env) (any, error) {
	var all []any
	for _, label := range e.Answers.List("offloading.clusters") {
		key, value, _ := strings.Cut(label, "=")
		all = append(all, map[string]any{"key": key, "operator": "In", "values": []any{value}})
	}
	if len(all) == 0 {
		return []any{}, nil
	}
	return []any{map[string]any{"matchExpressions": all}}, nil
}

func remoteName(_ context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("offloading.mapping") != "SelectedName" {
		return nil, nil
	}
	return e.Answers.Text("offloading.remote-name"), nil
}
