package vsphere

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// provisionerChart installs the chart of the provisioner. An undo keeps the release while claims
// outside this link have volumes of its StorageClass. Without the provisioner, pods could still use
// these volumes, but nothing would delete or archive them.
type provisionerChart struct{ action.Chart }

// PlanUndo keeps the release while claims outside this link need the provisioner.
func (p provisionerChart) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := whileNeeded(ctx, e, p.Chart.PlanUndo)
	if i := slices.IndexFunc(c.Items, func(it steps.Item) bool { return it.Held }); i >= 0 {
		c.Items = c.Items[i : i+1] // the release represents all of its objects
	}
	return c, err
}

// Undo uninstalls the chart unless claims outside this link need the provisioner.
func (p provisionerChart) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	users, err := claimsOfOthers(ctx, e)
	if err != nil || len(users) > 0 {
		return err
	}
	return p.Chart.Undo(ctx, e, say)
}

// provisionerPrerequisite creates objects that the provisioner's pod requires. An undo keeps these objects while it
// keeps the provisioner.
type provisionerPrerequisite struct{ action.Manifest }

// OthersStay implements action.OthersStay, because provisionerPrerequisite can keep unmanaged objects.
func (provisionerPrerequisite) OthersStay() {}

// PlanUndo keeps the objects while claims outside this link need the provisioner.
func (b provisionerPrerequisite) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	return whileNeeded(ctx, e, b.Manifest.PlanUndo)
}

// Undo deletes the objects unless claims outside this link need the provisioner.
func (b provisionerPrerequisite) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	users, err := claimsOfOthers(ctx, e)
	if err != nil || len(users) > 0 {
		return err
	}
	return b.Manifest.Undo(ctx, e, say)
}

// provisionerSpace creates the provisioner's namespace. An unmanaged namespace is not changed.
type provisionerSpace struct{ provisionerPrerequisite }

// Plan keeps an unmanaged namespace.
func (p provisionerSpace) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	return planSpace(ctx, e, nfsSpace(e), p.Manifest)
}

// Do creates the namespace unless an unmanaged namespace with the same name exists.
func (p provisionerSpace) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	return doSpace(ctx, e, nfsSpace(e), p.Manifest, say)
}

// whileNeeded returns the undo plan that plan creates. While claims outside this link have volumes of the StorageClass,
// the returned plan deletes nothing.
func whileNeeded(
	ctx context.Context, e steps.Env, plan func(context.Context, steps.Env) (steps.Change, error),
) (steps.Change, error) {
	users, err := claimsOfOthers(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	c, err := plan(ctx, e)
	if err != nil || len(users) == 0 {
		return c, err
	}
	why := "claims outside this link have volumes of this StorageClass: " + check.Some(users) +
		". Delete these claims first, or keep the provisioner and the StorageClass"
	for i := range c.Items {
		if it := &c.Items[i]; it.Verb.Changes() {
			it.Verb, it.Note, it.Held, it.Diff, it.Hash = steps.Leave, why, true, "", ""
		}
	}
	return c, nil
}

// claimsOfOthers returns the claims, as NAMESPACE/NAME, with a StorageClass that this link created.
// It omits the link's own test claims.
func claimsOfOthers(ctx context.Context, e steps.Env) ([]string, error) {
	classes, err := e.Cluster.List(ctx, check.StorageClasses, "", e.OwnedBy("nfs-chart"))
	if err != nil || len(classes) == 0 {
		return nil, err
	}
	claims, err := check.List[corev1.PersistentVolumeClaim](ctx, e.Cluster, check.VolumeClaims, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	own := map[types.UID]bool{}
	for _, action := range tryingActions {
		tried, err := inventory.MadeBy(ctx, e, check.VolumeClaims, action)
		if err != nil {
			return nil, err
		}
		for _, c := range tried {
			own[c.UID] = true
		}
	}
	made := objectNames(classes)
	var out []string
	for _, c := range claims {
		if slices.Contains(made, claimClass(c)) && !own[c.UID] {
			out = append(out, c.Namespace+"/"+c.Name)
		}
	}
	return out, nil
}
