package vsphere

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// provisionerChart is the chart of the provisioner. It stays as long as volumes of others are of its class: pods would
// keep them, but nobody would delete or archive them any more.
type provisionerChart struct{ steps.Chart }

// PlanUndo leaves a provisioner that others need.
func (p provisionerChart) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	return whileNeeded(ctx, e, "the NFS provisioner", p.Chart.PlanUndo)
}

// Undo takes it away, where nobody needs it.
func (p provisionerChart) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	users, err := claimsOfOthers(ctx, e)
	if err != nil || len(users) > 0 {
		return err
	}
	return p.Chart.Undo(ctx, e, say)
}

// besideProvisioner is what the provisioner's pod needs, and stays as long.
type besideProvisioner struct{ steps.Manifest }

// PlanUndo leaves what a provisioner needs that others need.
func (b besideProvisioner) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	return whileNeeded(ctx, e, "what it needs", b.Manifest.PlanUndo)
}

// Undo takes it away, where nobody needs it.
func (b besideProvisioner) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	users, err := claimsOfOthers(ctx, e)
	if err != nil || len(users) > 0 {
		return err
	}
	return b.Manifest.Undo(ctx, e, say)
}

// provisionerSpace is its namespace. One that somebody else made stays as it is.
type provisionerSpace struct{ besideProvisioner }

// Plan leaves what is somebody else's.
func (p provisionerSpace) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	return planSpace(ctx, e, nfsSpace(e), p.Manifest)
}

// Do makes it, where it is to be made.
func (p provisionerSpace) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	return doSpace(ctx, e, nfsSpace(e), p.Manifest, say)
}

func whileNeeded(ctx context.Context, e steps.Env, what string, plan func(context.Context, steps.Env) (steps.Change, error)) (steps.Change, error) {
	users, err := claimsOfOthers(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	if len(users) > 0 {
		return left(what, "claims that are not this link's have volumes of its class: "+some(users)+". Delete them first, or leave both"), nil
	}
	return plan(ctx, e)
}

// claimsOfOthers are those of a class that this link has made.
func claimsOfOthers(ctx context.Context, e steps.Env) ([]string, error) {
	classes, err := e.Cluster.List(ctx, check.StorageClasses, "", e.Marked("nfs-chart"))
	if err != nil || len(classes) == 0 {
		return nil, err
	}
	claims, err := check.List[corev1.PersistentVolumeClaim](ctx, e.Cluster, claimKind, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	made := objectNames(classes)
	var out []string
	for _, c := range claims {
		if slices.Contains(made, classOf(c)) && steps.CreatedBy(c.Annotations) != e.Link {
			out = append(out, c.Namespace+"/"+c.Name)
		}
	}
	return out, nil
}
