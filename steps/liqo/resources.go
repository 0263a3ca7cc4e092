package liqo

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

func resources() steps.Step {
	sliced := func(name, value string) func(steps.Env) (any, string) {
		return asItStands("slice", name, value, "Liqo's own default")
	}
	return steps.Step{
		Name: "resources", Title: "Resources",
		Why: "The consumer asks for resources in a ResourceSlice. Liqo copies it to the provider, which accepts or denies it; a virtual node then stands for the provider on the consumer.",
		Ask: []steps.Question{
			{Key: "resources.cpu", Title: "CPUs to ask for", Kind: steps.Quantity, Help: "The provider's default class grants whatever is asked for; carrick compares it with what is free there.", Default: sliced("cpu", "4")},
			{Key: "resources.memory", Title: "Memory to ask for", Kind: steps.Quantity, Help: "Such as 8Gi.", Default: sliced("memory", "8Gi")},
			{Key: "resources.pods", Title: "Pods to ask for", Kind: steps.Quantity, Opt: true, Help: "Empty: the provider's default, 110.", Default: sliced("pods", "")},
			{Key: "resources.more", Title: "Other resources to ask for", Kind: steps.Label, Many: true, Opt: true, Help: "Such as nvidia.com/gpu=1."},
			{Key: "resources.class", Title: "Class of the request", Kind: steps.Name, Help: "default is granted by Liqo itself; another one by a controller of the provider's admin.", Default: sliced("class", "default")},
		},
		Facts: []steps.Fact{
			{Name: "slice", Title: "the ResourceSlice as it stands", On: steps.Local, Learn: sliceFact},
		},
		Actions: []steps.Action{{
			Name: "resource-slice", Title: "Ask for resources", On: steps.Local,
			Needs: []string{"control-plane-accepted", "peer/tenant", "peer/signs-certificates"},
			Doer: sliceDoer{vanishing{steps.Manifest{File: "resource-slice.yaml", Values: steps.Values{
				"name":      sliceName,
				"resources": requested,
			}}, sliceChildren}},
		}},
		Checks: resourceChecks(),
	}
}

// slices are the ResourceSlices of the tenant namespace that are for the provider,
// by label or by spec: one that lacks a label is the usual mistake.
func ownSlices(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	id, err := peerID(e)
	if err != nil {
		return nil, err
	}
	all, err := living(ctx, e, resourceSlices, tenantNamespace(e), "")
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, s := range all {
		if s.GetLabels()[remoteIDLabel] == id || text(s, "spec", "providerClusterID") == id {
			out = append(out, s)
		}
	}
	return out, nil
}

// ownSlice is the one of the peering; nil where there is none.
func ownSlice(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	found, err := ownSlices(ctx, e)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	id, err := peerID(e)
	if err != nil {
		return nil, err
	}
	name := adopted(found, id)
	for _, s := range found {
		if s.GetName() == name {
			return s, nil
		}
	}
	return nil, nil
}

func sliceName(ctx context.Context, e steps.Env) (any, error) {
	s, err := ownSlice(ctx, e)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return s.GetName(), nil
	}
	return e.Peer.Value("cluster-id")
}

// sliceFact is what the slice asks for: "cpu", "memory", "pods", and its "name"
// and "class".
func sliceFact(ctx context.Context, e steps.Env) (any, error) {
	s, err := ownSlice(ctx, e)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, steps.Absent("the consumer asks for no resources yet")
	}
	m := map[string]any{"name": s.GetName()}
	set(m, "class", text(s, "spec", "class"))
	for _, name := range []string{"cpu", "memory", "pods"} {
		v, _, _ := unstructured.NestedFieldNoCopy(s.Object, "spec", "resources", name)
		if v != nil {
			set(m, name, quantityText(v))
		}
	}
	return m, nil
}

// requested is spec.resources.
func requested(_ context.Context, e steps.Env) (any, error) {
	out := map[string]any{"cpu": e.Answers.Text("resources.cpu"), "memory": e.Answers.Text("resources.memory")}
	if pods := e.Answers.Text("resources.pods"); pods != "" {
		out["pods"] = pods
	}
	for _, more := range e.Answers.List("resources.more") {
		name, amount, _ := strings.Cut(more, "=")
		out[name] = amount
	}
	return out, nil
}

// quantityText is a quantity as it is written: YAML's 4 is the quantity 4.
func quantityText(v any) string { return strings.TrimSpace(fmt.Sprint(v)) }
