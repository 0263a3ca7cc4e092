package liqo

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// tenantDoer creates the Tenant. If the namespace has a Tenant with another name, tenantDoer deletes that Tenant first,
// because Liqo accepts only one per namespace.
type tenantDoer struct{ action.Manifest }

// other returns a Tenant in the tenant namespace whose name is not the answer tenant.name, or nil if there is none.
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

// Plan also shows that a Tenant with another name is replaced. It returns an error if the consumer still has slices on
// the provider, because Liqo would delete them with that Tenant.
func (d tenantDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	other, err := d.other(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	if other == nil {
		c, err := d.Manifest.Plan(ctx, e)
		if err == nil && !servesConsumer(e) {
			err = noteDrainedObjects(ctx, e, &c)
		}
		return c, err
	}
	name, ns := e.Answers.Text("tenant.name"), tenantNamespace(e)
	item := steps.Item{
		Verb: steps.Replace, What: "Tenant " + ns + "/" + other.GetName(),
		Hash: "tenant:" + name + ":" + string(other.GetUID()),
		Note: "deleted and recreated as " + name + ": Liqo accepts only one Tenant per namespace",
	}
	copies, err := living(ctx, e, resourceSlices, ns, "")
	if err != nil {
		return steps.Change{}, err
	}
	if len(copies) > 0 {
		return steps.Change{}, fmt.Errorf(
			"%s cannot be renamed to %s while ResourceSlice %s of the consumer exists on the provider, because Liqo would "+
				"delete it, too. Undo the steps offloading and resources first, or set tenant.name to %s",
			item.What, name, check.OrNone(names(copies)), other.GetName(),
		)
	}
	return steps.Change{Items: []steps.Item{item}, Permissions: []permission.Rule{
		{Verb: "delete", Group: tenants.Group, Resource: tenants.Resource, Namespace: ns, Name: other.GetName()},
		{Verb: "create", Group: tenants.Group, Resource: tenants.Resource, Namespace: ns},
		{Verb: "patch", Group: tenants.Group, Resource: tenants.Resource, Namespace: ns, Name: name},
	}}, nil
}

// noteDrainedObjects adds a note to the plan about the objects that Liqo deletes on the provider when the Tenant is
// drained.
//
// Source: liqotech/liqo pkg/liqo-controller-manager/authentication/tenant-controller (handleTenantDrained), 557c199cf.
func noteDrainedObjects(ctx context.Context, e steps.Env, c *steps.Change) error {
	i := slices.IndexFunc(c.Items, func(it steps.Item) bool { return it.Verb == steps.Update })
	if i < 0 {
		return nil
	}
	id, err := peerID(e)
	if err != nil {
		return err
	}
	of := cluster.Selector{Labels: remoteIDLabel + "=" + id}
	spaces, err := check.List[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", of)
	if err != nil && !apierrors.IsForbidden(err) { // the note is optional, so a plan must not require this permission
		return err
	}
	note := "Liqo deletes the consumer's RoleBinding and ResourceSlices on the provider"
	spaces = slices.DeleteFunc(spaces, func(ns *corev1.Namespace) bool { return !forOffloading(ns) })
	if len(spaces) > 0 {
		var there []string
		for _, ns := range spaces {
			there = append(there, ns.Name)
		}
		note += ", and with them the consumer's offloaded namespaces, including volumes: " + check.OrNone(there)
	}
	c.Items[i].Note = steps.JoinNotes(c.Items[i].Note, note)
	return nil
}

// Do creates the Tenant. If the namespace has a Tenant with another name, Do first deletes that Tenant, or returns an
// error if the admin has not confirmed the deletion.
func (d tenantDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	other, err := d.other(ctx, e)
	if err != nil {
		return err
	}
	if other != nil {
		if !e.Apply.Replace {
			return fmt.Errorf(
				"the Tenant %s must be deleted and recreated as %s, but this is not confirmed", other.GetName(),
				e.Answers.Text("tenant.name"),
			)
		}
		if err := e.Cluster.Delete(ctx, tenants, other.GetNamespace(), other.GetName(), other.GetUID()); err != nil {
			return fmt.Errorf("delete Tenant %s: %w", other.GetName(), err)
		}
		say.Did(steps.Delete, "Tenant "+other.GetNamespace()+"/"+other.GetName(), "")
		if err := e.Cluster.Gone(ctx, tenants, other.GetNamespace(), other.GetName(), other.GetUID()); err != nil {
			return err
		}
	}
	return d.Manifest.Do(ctx, e, say)
}

// PlanUndo also shows which objects are deleted with the Tenant.
func (d tenantDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err == nil {
		c.Along, err = along(ctx, e)
	}
	if err != nil || !deletes(c) {
		return c, err
	}
	c.Permissions = append(c.Permissions, permission.Rule{Verb: "patch", Group: tenants.Group, Resource: tenants.Resource})
	for i := range c.Items {
		if c.Items[i].Verb == steps.Delete {
			c.Items[i].Note = "Liqo first deletes the consumer's replicated objects, and with them its offloaded namespaces " +
				"on the provider, including volumes"
		}
	}
	signed, err := d.signed(ctx, e)
	for _, s := range signed {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Delete, What: s.String(), Hash: string(s.uid),
			Note: "Liqo would deny a later peering with other keys while this certificate of the peering exists",
		})
		c.Along[e.Side] = append(c.Along[e.Side], s.String())
		c.Permissions = append(
			c.Permissions,
			permission.Rule{Verb: "delete", Resource: check.Secrets.Resource, Namespace: s.namespace, Name: s.name},
		)
	}
	return c, err
}

// signed returns the Secrets with the certificates that Liqo signed for each consumer whose Tenant undo deletes.
func (d tenantDoer) signed(ctx context.Context, e steps.Env) (out []child, err error) {
	found, err := inventory.MadeBy(ctx, e, tenants, e.Action)
	if err != nil {
		return nil, err
	}
	for _, t := range found {
		if !t.Created || t.Labels[remoteIDLabel] == "" {
			continue
		}
		of, err := signedFor(ctx, e, t.Namespace, t.Labels[remoteIDLabel])
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}

// Undo deletes the Tenant, and the certificates that Liqo signed for the consumer. If copies of the consumer's objects
// still exist on the provider, Undo first drains the Tenant, so that Liqo deletes the copies. Without the Tenant, no
// controller would delete them.
//
// Source: liqotech/liqo pkg/liqo-controller-manager/authentication/tenant-controller.
func (d tenantDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return err
	}
	if deletes(c) {
		if err := drain(ctx, e, say); err != nil {
			return err
		}
		signed, err := d.signed(ctx, e)
		if err != nil {
			return err
		}
		for _, s := range signed {
			if err := e.Cluster.Delete(ctx, s.gvr, s.namespace, s.name, s.uid); err != nil {
				return fmt.Errorf("delete %s: %w", s, err)
			}
			say.Did(steps.Delete, s.String(), string(s.uid))
		}
	}
	return d.Manifest.Undo(ctx, e, say)
}

// drain makes Liqo delete the objects that the consumer's Liqo copied into the namespaces of this link's Tenants. It
// waits until they are deleted.
func drain(ctx context.Context, e steps.Env, say steps.Progress) error {
	found, err := inventory.MadeBy(ctx, e, tenants, e.Action)
	if err != nil {
		return err
	}
	for _, t := range found {
		copies, err := copiesIn(ctx, e, t.Namespace)
		if err != nil {
			return err
		}
		if len(copies) == 0 {
			continue
		}
		patch := []byte(`{"spec":{"tenantCondition":"` + drained + `"}}`)
		if _, err := e.Cluster.Patch(
			ctx, tenants, t.Namespace, t.Name, patch, cluster.PatchOptions{Manager: e.Manager(), UID: t.UID},
		); err != nil {
			return fmt.Errorf("drain Tenant %s: %w", t.Name, err)
		}
		say.Did(steps.Update, "Tenant "+t.Namespace+"/"+t.Name, "")
		for _, c := range copies {
			say.Say("waiting for Liqo to delete %s, which the consumer did not delete", c)
			if err := e.Cluster.Gone(ctx, c.gvr, c.namespace, c.name, c.uid); err != nil {
				err, _ = explainHeld(e, err)
				return err
			}
		}
	}
	return nil
}

// copiesIn returns the objects that the consumer's Liqo copied into a namespace.
func copiesIn(ctx context.Context, e steps.Env, namespace string) ([]child, error) {
	found, err := living(ctx, e, resourceSlices, namespace, replicatedLabel+"=true")
	if err != nil {
		return nil, err
	}
	maps, err := living(ctx, e, namespaceMaps, namespace, replicatedLabel+"=true")
	return append(
		childrenOf(resourceSlices, "ResourceSlice", found), childrenOf(namespaceMaps, "NamespaceMap", maps)...,
	), err
}
