package liqo

import (
	"context"

	"carrick/steps"
	"carrick/steps/action"
)

func authentication() steps.Step {
	return steps.Step{
		Name: "authentication", Title: "Authentication",
		Why: "The provider is told of the consumer as a tenant, without a handshake. The consumer's Liqo finds the " +
			"kubeconfig by labels and starts to copy its requests over. It says nothing when something is wrong with it, so " +
			"it was proved first.",
		Ask: []steps.Question{
			{
				Key: "tenant.name", Title: "Name of the Tenant on the provider", Kind: steps.Name, On: steps.Remote,
				Help: "Unique on the whole provider: the published guide's my-tenant can be taken once only.",
				Default: func(e steps.Env) (any, string) {
					if name := e.Own.Field("tenant", "name"); name != nil {
						return name, "it is there"
					}
					id, err := peerID(e)
					if err != nil {
						return nil, ""
					}
					return id, "the consumer's cluster id"
				},
			},
			{
				Key: "tenant.condition", Title: "What the provider lets the tenant do", Kind: steps.Pick, On: steps.Remote,
				Of: []steps.Choice{
					{Value: active, Title: "ask for resources and use them"},
					{Value: cordoned, Title: "use what it has, and get no more"},
					{Value: drained, Title: "nothing: what it has is taken back, and its credential bound to nothing"},
				},
				Help: "The provider's soft stop: cordon before maintenance, drain to end the peering from this side alone.",
				Adopt: func(_ context.Context, e steps.Env) (any, string, error) {
					return e.Own.Field("tenant", "condition"), "spec.tenantCondition of the Tenant", nil
				},
				Default: steps.Fixed(active, "the published guide"),
			},
		},
		Facts: []steps.Fact{
			{Name: "tenant", Title: "the Tenant as it stands", On: steps.Remote, Shared: true, Learn: tenantFact},
		},
		Actions: []steps.Action{
			{
				Name: "tenant", Title: "Tell the provider of the consumer", On: steps.Remote, Needs: []string{"tenant-namespace"},
				Doer: tenantDoer{action.Manifest{File: "tenant.yaml"}},
			},
			{
				Name: "control-plane", Title: "Give the consumer its kubeconfig", On: steps.Local,
				Needs: []string{"tenant-namespace", "kubeconfig-whole", "credential-rights"},
				Doer: action.Manifest{File: "control-plane.yaml", Values: action.Values{
					"name": controlPlaneName,
				}},
			},
		},
		Checks: authenticationChecks(),
	}
}

// These are the values of a Tenant's condition, which determines what the consumer is allowed
// to do.
//
// Source: liqotech/liqo apis/authentication/v1beta1/tenant_types.go (TenantCondition).
const (
	active   = "Active"
	cordoned = "Cordoned"
	drained  = "Drained"
)

// servesConsumer reports whether the provider serves the consumer according to the answers. For
// a drained Tenant Liqo deletes the RoleBinding and all copied objects.
//
// Source: liqotech/liqo pkg/liqo-controller-manager/authentication/tenant-controller
// (handleTenantDrained), 557c199cf.
func servesConsumer(e steps.Env) bool { return e.Answers.Text("tenant.condition") != drained }

func controlPlaneName(_ context.Context, e steps.Env) (any, error) {
	if name := e.Own.Field("control-plane", "name"); name != nil {
		return name, nil
	}
	id, err := peerID(e)
	return "kubeconfig-controlplane-" + id, err
}

// tenantFact returns the Tenant in the namespace of the peering. Liqo's webhook allows only
// one.
func tenantFact(ctx context.Context, e steps.Env) (any, error) {
	found, err := living(ctx, e, tenants, tenantNamespace(e), "")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, steps.Absent("the provider has no Tenant for the consumer yet")
	}
	m := map[string]any{"name": found[0].GetName()}
	set(m, "condition", text(found[0], "spec", "tenantCondition"))
	return m, nil
}
