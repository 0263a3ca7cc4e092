package liqo

import (
	"context"
	"slices"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func tenantNamespaces() steps.Step {
	question := func(who string, side steps.Side) steps.Question {
		return steps.Question{
			Key: who + ".tenant-namespace", Title: "Tenant namespace on the " + who, Kind: steps.Namespace, On: side,
			Help: "The namespace for all objects of this peering. Default: an existing namespace labelled with the peer's id, " +
				"or the name that liqoctl uses, such as liqo-tenant-rome.",
			Default: tenantNamespaceDefault,
		}
	}
	return steps.Step{
		Name: "tenant-namespaces", Title: "Tenant namespaces",
		Map: steps.MapRow{Local: "tenant namespace", Remote: "tenant namespace"},
		Why: "Each side keeps the objects of this peering in its own namespace. Liqo finds the namespace by a label with " +
			"the other side's cluster id.",
		Ask: []steps.Question{question(consumer, steps.Local), question(provider, steps.Remote)},
		Facts: []steps.Fact{
			{
				Name: "tenant-namespace", Title: "the namespace of this peering", On: steps.Both, Shared: true,
				Learn: labelledNamespace,
			},
			{
				Name: labelFact, Title: "the cluster id in the tenant namespace's label", On: steps.Both, Shared: true,
				Learn: namespaceLabel,
			},
		},
		Actions: onBothSides(
			"namespace", "Create the consumer's tenant namespace", "Create the provider's tenant namespace", steps.Action{
				Needs: []string{"cluster-id", "peer/cluster-id"},
				Doer: tenantSpaceDoer{action.Manifest{File: "tenant-namespace.yaml", Values: action.Values{
					"tenant-namespace": tenantSpace,
					"pod-security":     gatewaySecurity,
				}}},
			},
		),
		Checks: namespaceChecks(),
	}
}

func tenantNamespaceDefault(e steps.Env) (any, string) {
	if name, err := e.Own.Text("tenant-namespace"); err == nil {
		return name, "the label with the peer's id"
	}
	id, err := peerID(e)
	if err != nil {
		return nil, ""
	}
	return "liqo-tenant-" + id, "liqoctl's naming scheme"
}

// tenantSpaces returns the namespaces that are labelled with the peer's cluster id. It excludes the namespaces that
// Liqo creates on a provider for offloaded namespaces, which have the same label (liqotech/liqo:
// pkg/liqo-controller-manager/offloading/namespacemap-controller).
func tenantSpaces(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	sel, err := ofPeer(e)
	if err != nil {
		return nil, err
	}
	found, err := living(ctx, e, check.Namespaces, "", sel)
	return slices.DeleteFunc(
		found, func(ns *unstructured.Unstructured) bool { return ns.GetAnnotations()[remoteSpaceOwner] != "" },
	), err
}

func labelledNamespace(ctx context.Context, e steps.Env) (any, error) {
	found, err := tenantSpaces(ctx, e)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, steps.Absent("no namespace of the %s is labelled with the peer's cluster id", e.SideName())
	}
	for _, ns := range found {
		if ns.GetLabels()[tenantLabel] == "true" {
			return ns.GetName(), nil
		}
	}
	return found[0].GetName(), nil
}

// gatewaySecurity returns the Pod Security level that gateway pods require, or nil if the answers configure no tunnel.
func gatewaySecurity(_ context.Context, e steps.Env) (any, error) {
	if joins(e) {
		return "privileged", nil
	}
	return nil, nil
}
