package liqo

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
)

// tenantDoer makes the Tenant. One of another name in the same namespace has to go
// first: Liqo takes one there.
type tenantDoer struct{ steps.Manifest }

// other is the Tenant that stands in the way of the name that is answered; nil
// where none does.
func (tenantDoer) other(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	found, err := living(ctx, e, tenants, tenantNamespace(e), "")
	if err != nil {
		return nil, err
	}
	for _, t := range found {
		if t.GetName() != e.Answers.Text("tenant.name") {
			return t, nil
		}
	}
	return nil, nil
}

// Plan shows a Tenant under another name as one that is replaced. While slices of
// the consumer are at the provider it is refused: they would go, too.
func (d tenantDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	other, err := d.other(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	if other == nil {
		return d.Manifest.Plan(ctx, e)
	}
	name, ns := e.Answers.Text("tenant.name"), tenantNamespace(e)
	item := steps.Item{
		Verb: steps.Replace, What: "Tenant " + ns + "/" + other.GetName(), Hash: "tenant:" + name + ":" + string(other.GetUID()),
		Note: "deleted, then made anew as " + name + ": Liqo takes one Tenant in a namespace",
	}
	copies, err := living(ctx, e, resourceSlices, ns, "")
	if err != nil {
		return steps.Change{}, err
	}
	if len(copies) > 0 {
		return steps.Change{}, fmt.Errorf("%s can't be renamed to %s while ResourceSlice %s of the consumer is at the provider: it would go, too. Undo the steps offloading and resources first, or answer tenant.name with %s",
			item.What, name, listed(names(copies)), other.GetName())
	}
	return steps.Change{Items: []steps.Item{item}, Rights: []cluster.Right{
		{Verb: "delete", Group: tenants.Group, Resource: tenants.Resource, Namespace: ns, Name: other.GetName()},
		{Verb: "create", Group: tenants.Group, Resource: tenants.Resource, Namespace: ns},
		{Verb: "patch", Group: tenants.Group, Resource: tenants.Resource, Namespace: ns, Name: name},
	}}, nil
}

// Do deletes a Tenant of another name, where that was confirmed, and makes its own.
func (d tenantDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	other, err := d.other(ctx, e)
	if err != nil {
		return err
	}
	if other != nil {
		if !e.Apply.Replace {
			return fmt.Errorf("tenant %s would have to be deleted and made anew as %s, which was not confirmed", other.GetName(), e.Answers.Text("tenant.name"))
		}
		if err := e.Cluster.Delete(ctx, tenants, other.GetNamespace(), other.GetName(), other.GetUID()); err != nil {
			return fmt.Errorf("delete Tenant %s: %w", other.GetName(), err)
		}
		say.Did(steps.Delete, "Tenant "+other.GetNamespace()+"/"+other.GetName(), "")
		within, cancel := context.WithTimeout(ctx, vanishWithin)
		defer cancel()
		if err := e.Cluster.Gone(within, tenants, other.GetNamespace(), other.GetName(), other.GetUID()); err != nil {
			return err
		}
	}
	return d.Manifest.Do(ctx, e, say)
}

// PlanUndo says what goes with the Tenant, too.
func (d tenantDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err == nil {
		c.Along, err = along(ctx, e)
	}
	return c, err
}

// vanishWithin is how long Liqo's controllers may take to clean up after an
// object.
const vanishWithin = 60 * time.Second
