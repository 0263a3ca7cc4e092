package liqo

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
	"carrick/steps/check"
)

// guideTenant is the Tenant's name in the published guide.
const guideTenant = "my-tenant"

func tenantExists(ctx context.Context, e steps.Env) steps.Result {
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	all, err := living(ctx, e, tenants, "", "")
	if apierrors.IsForbidden(err) {
		all, err = living(ctx, e, tenants, tenantNamespace(e), "")
	}
	if err != nil {
		return steps.Errored(err)
	}
	var here []*unstructured.Unstructured
	for _, t := range all {
		if t.GetNamespace() == tenantNamespace(e) {
			here = append(here, t)
		}
	}
	switch len(here) {
	case 0:
		return noTenant(e, all, id)
	case 1:
		return judgeTenant(here[0], id, e)
	}
	return steps.Failed(
		fmt.Sprintf(
			"%d Tenants are in namespace %s: %s. Liqo accepts only one", len(here), tenantNamespace(e),
			check.OrNone(names(here)),
		),
		e.Kubectl()+" -n "+tenantNamespace(e)+
			" delete tenants.authentication.liqo.io NAME    # the Tenant that does not belong to the consumer",
	)
}

// deleteTenant returns the command that deletes a Tenant so that apply can create another one.
func deleteTenant(t *unstructured.Unstructured, e steps.Env) string {
	return e.Kubectl() + " -n " + steps.Quoted(t.GetNamespace()) + " delete tenants.authentication.liqo.io " +
		steps.Quoted(t.GetName()) + "    # then " + e.ApplyStep("authentication")
}

// noTenant returns the verdict for a consumer without a Tenant. If possible, the verdict gives the reason.
func noTenant(e steps.Env, all []*unstructured.Unstructured, id string) steps.Result {
	name := e.Answers.Text("tenant.name")
	for _, t := range all {
		switch {
		case text(t, "spec", "clusterID") == id:
			return steps.Failed(
				fmt.Sprintf("the consumer's Tenant is %s/%s, not in %s", t.GetNamespace(), t.GetName(), tenantNamespace(e)),
				deleteTenant(t, e),
			)
		case t.GetName() == name:
			return steps.Failed(
				fmt.Sprintf(
					"the consumer has no Tenant, and the name %s is used by the Tenant of cluster %s in %s. Names are unique on "+
						"the provider",
					name, text(t, "spec", "clusterID"), t.GetNamespace(),
				),
				"set tenant.name to "+id+", then "+e.ApplyStep("authentication"),
			)
		}
	}
	return steps.Undone("no Tenant exists in " + tenantNamespace(e))
}

// judgeTenant verifies that t, the only Tenant of the namespace, serves the consumer with the given cluster id.
func judgeTenant(t *unstructured.Unstructured, id string, e steps.Env) steps.Result {
	what := "Tenant " + t.GetNamespace() + "/" + t.GetName()
	_, shook, _ := unstructured.NestedMap(t.Object, "status", "authParams")
	policy, condition, space := text(
		t, "spec", "authzPolicy",
	), text(t, "spec", "tenantCondition"), text(t, "status", "tenantNamespace")
	var bad []string
	if c := text(t, "spec", "clusterID"); c != id {
		return steps.Failed(
			fmt.Sprintf("%s is for cluster %q, not %s. Liqo does not allow a change of the cluster id", what, c, id),
			deleteTenant(t, e),
		)
	}
	if l := t.GetLabels()[remoteIDLabel]; l != id {
		bad = append(bad, fmt.Sprintf("its label %s is %q, not %s", remoteIDLabel, l, id))
	}
	if policy != "TolerateNoHandshake" && !shook {
		bad = append(bad, fmt.Sprintf("its authzPolicy is %q, so Liqo waits for a handshake that never happens", policy))
	}
	if len(bad) > 0 {
		return steps.Failed(what+": "+strings.Join(bad, "; "), "")
	}
	switch {
	case condition == drained && !servesConsumer(e):
		return steps.Warned(
			what+" is drained, as the answers specify. Liqo has deleted the consumer's RoleBinding and objects on the provider",
			activate(e, condition),
		)
	case condition == drained:
		return steps.Failed(
			what+" is drained. Liqo has deleted the consumer's RoleBinding and objects on the provider", activate(e, condition),
		)
	case space == "":
		return steps.Waits(
			t.GetCreationTimestamp().Time, "%s has no namespace in its status: Liqo's controllers have not processed it", what,
		).Or(liqoLog(e, "controller-manager"))
	case space != t.GetNamespace():
		return steps.Failed(
			fmt.Sprintf("%s has another namespace in its status: %s", what, space), liqoLog(e, "controller-manager"),
		)
	case condition == cordoned:
		return steps.Warned(what+" is cordoned: the consumer keeps its resources but gets no more", activate(e, condition))
	}
	if shook {
		return steps.Passed("%s, with a handshake", what)
	}
	return steps.Passed("%s, without a handshake", what)
}

func liqoLog(e steps.Env, ending string) string {
	ns, err := liqoSpace(e)
	if err != nil {
		ns = usualNamespace
	}
	return e.Kubectl() + " -n " + ns + " logs deployment/liqo-" + ending + " --tail 50"
}

func tenantNamed(ctx context.Context, e steps.Env) steps.Result {
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	found, err := living(ctx, e, tenants, tenantNamespace(e), "")
	if err != nil {
		return steps.Errored(err)
	}
	if len(found) == 0 {
		return steps.Skipped("no Tenant exists in %s", tenantNamespace(e))
	}
	switch name := found[0].GetName(); name {
	case id:
		return steps.Passed("%s, the consumer's cluster id", name)
	case guideTenant:
		fix := "set tenant.name to " + id + ", then: " + e.ApplyStep("authentication") + " --replace"
		if copies, err := copiesIn(ctx, e, tenantNamespace(e)); err != nil || len(copies) > 0 {
			fix = "undo the steps offloading and resources, " + fix + "; then apply these steps again: carrick apply " +
				e.LinkFile()
		}
		return steps.Warned(name+" is the published guide's name, which Liqo rejects for a second consumer", fix)
	default:
		return steps.Passed("%s; liqoctl would use the name %s", name, id)
	}
}
