package liqo

import (
	"context"

	"carrick/steps"
	"carrick/steps/action"
)

func authentication() steps.Step {
	return steps.Step{
		Name: "authentication", Title: "Authentication",
		Map: steps.MapRow{Local: "control-plane Secret", Remote: "Tenant", Arrow: steps.Remote},
		Why: "carrick registers the consumer as a Tenant on the provider and gives the consumer's Liqo a kubeconfig. Liqo " +
			"reports no error if that kubeconfig is wrong, so carrick tests it first.",
		Ask: []steps.Question{
			{
				Key: "tenant.name", Title: "Tenant name", Kind: steps.Name, On: steps.Remote,
				Help: "A name that is unique on the provider, such as milan. The published guide's my-tenant can be " +
					"used only once.",
				Default: func(e steps.Env) (any, string) {
					if name := e.Own.Field("tenant", "name"); name != nil {
						return name, "from the Tenant"
					}
					id, err := peerID(e)
					if err != nil {
						return nil, ""
					}
					return id, "the consumer's cluster id"
				},
			},
			{
				Key: "tenant.condition", Title: "Tenant condition", Kind: steps.Pick, On: steps.Remote,
				Of: []steps.Choice{
					{Value: active, Title: "can request and use resources"},
					{Value: cordoned, Title: "keeps its resources, but cannot request more"},
					{Value: drained, Title: "loses its resources and its RoleBinding"},
				},
				Help: "Choose Cordoned before maintenance, or Drained to end the peering from this side only.",
				Adopt: func(_ context.Context, e steps.Env) (any, string, error) {
					return e.Own.Field("tenant", "condition"), "from the Tenant", nil
				},
				Default: steps.Fixed(active, "from the published guide"),
			},
		},
		Facts: []steps.Fact{
			{Name: "tenant", Title: "the existing Tenant", On: steps.Remote, Shared: true, Learn: tenantFact},
		},
		Actions: []steps.Action{
			{
				Name: "tenant", Title: "Register the consumer as a Tenant", On: steps.Remote, Needs: []string{"tenant-namespace"},
				Doer: tenantDoer{action.Manifest{File: "tenant.yaml"}},
			},
			{
				Name: "control-plane", Title: "Create the kubeconfig Secret for the consumer's Liqo", On: steps.Local,
				Needs: []string{"tenant-namespace", "kubeconfig-self-contained", "credential-rights"},
				Doer: action.Manifest{File: "control-plane.yaml", Values: action.Values{
					"name": controlPlaneName,
				}},
			},
		},
		Checks: authenticationChecks(),
	}
}

// These are the values of a Tenant's spec.tenantCondition. The condition determines what the consumer is allowed to do.
//
// Source: liqotech/liqo apis/authentication/v1beta1/tenant_types.go (TenantCondition).
const (
	active   = "Active"
	cordoned = "Cordoned"
	drained  = "Drained"
)

// servesConsumer reports whether the provider serves the consumer. It returns false if the answers set the Tenant's
// condition to Drained, because Liqo then deletes the consumer's RoleBinding and all objects that the consumer's Liqo
// copied to the provider.
//
// Source: liqotech/liqo pkg/liqo-controller-manager/authentication/tenant-controller (handleTenantDrained), 557c199cf.
func servesConsumer(e steps.Env) bool { return e.Answers.Text("tenant.condition") != drained }

func controlPlaneName(_ context.Context, e steps.Env) (any, error) {
	if name := e.Own.Field("control-plane", "name"); name != nil {
		return name, nil
	}
	id, err := peerID(e)
	return "kubeconfig-controlplane-" + id, err
}

// tenantFact returns the name and the condition of the Tenant in the tenant namespace. Liqo's webhook allows only one
// Tenant per namespace.
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
