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

// offloadingName is the only name that Liqo accepts for a NamespaceOffloading (liqotech/liqo:
// pkg/webhooks/namespaceoffloading).
const offloadingName = "offloading"

func offloading() steps.Step {
	return steps.Step{
		Name: "offloading", Title: "Offloading", When: servesConsumer,
		Map: steps.MapRow{Local: "offloaded namespace", Remote: "offloaded pods", Arrow: steps.Remote},
		Why: "carrick offloads a namespace to the provider. Existing pods stay on the consumer, because only new pods get " +
			"the toleration for the virtual node.",
		Ask: offloadingQuestions(),
		Facts: []steps.Fact{
			{Name: "offloading", Title: "the existing NamespaceOffloading", On: steps.Local, Learn: offloadingFact},
		},
		Actions: []steps.Action{
			{
				Name: "offloaded-namespace", Title: "Create the namespace", On: steps.Local,
				Doer: action.Manifest{File: "offloaded-namespace.yaml"},
			},
			{
				Name: "offloading", Title: "Offload the namespace to the provider", On: steps.Local,
				Needs: []string{"virtual-node"},
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
			Key: "offloading.namespace", Title: "Namespace to offload", Kind: steps.Namespace, NotFromPeer: true,
			Adopt: adoptOffloaded,
			Help: "The namespace whose pods can run on the provider, such as demo. carrick creates it if it does not " +
				"exist. Undo deletes its counterpart on the provider, with all contents.",
			Default: steps.Fixed("demo", "from the published guide"),
		},
		{
			Key: "offloading.pods", Title: "Pod placement", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: "LocalAndRemote", Title: "on both sides, chosen by the scheduler"},
				{Value: "Remote", Title: "on the provider only"},
				{Value: "Local", Title: "on the consumer only, with its Services offloaded"},
			},
			Help:    "If you restrict the placement later, running pods stay where they are.",
			Default: asItExists("offloading", "pods", "LocalAndRemote", "from the published guide"),
		},
		{
			Key: "offloading.mapping", Title: "Namespace name on the provider", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: "DefaultName", Title: "the local name and the consumer's cluster id, which never conflicts"},
				{Value: "EnforceSameName", Title: "the same name, which fails if that namespace exists"},
				{Value: "SelectedName", Title: "a name of your choice"},
			},
			Help:    "To change the mapping later, you must undo this step.",
			Default: asItExists("offloading", "mapping", "DefaultName", "from the published guide"),
		},
		{
			Key: "offloading.remote-name", Title: "Custom name on the provider", Kind: steps.Namespace,
			Help:    "A namespace that does not exist on the provider, such as demo-milan.",
			When:    func(e steps.Env) bool { return e.Answers.Text("offloading.mapping") == "SelectedName" },
			Default: asItExists("offloading", "remote-name", nil, ""),
		},
		{
			Key: "offloading.clusters", Title: "Labels of the target providers", Kind: steps.Label, Many: true,
			Opt:   true,
			Adopt: adoptClusterSelector,
			Help:  "Labels of virtual nodes, such as " + remoteIDLabel + "=rome. Empty: all providers of this consumer.",
		},
	}
}

func offloadingFact(ctx context.Context, e steps.Env) (any, error) {
	o, err := e.Cluster.Get(ctx, namespaceOffloadings, e.Answers.Text("offloading.namespace"), offloadingName)
	if apierrors.IsNotFound(err) || errors.Is(err, failure.ErrNotServed) {
		return nil, steps.Absent("the namespace is not offloaded yet")
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

// clusterSelector returns one node selector term with all labels in the answers. If the answers contain no labels, it
// returns no term, and the selector matches every provider.
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
