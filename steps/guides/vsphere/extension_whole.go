package vsphere

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// wholeDoer creates an object that carrick owns as a whole. If an unmanaged object of that name
// exists, as created by the published guide, wholeDoer keeps it if it does what is required.
// Otherwise it deletes and recreates it, because parts of it would remain: an init container, a
// second webhook.
type wholeDoer struct {
	action.Manifest
	kind schema.GroupVersionResource
	in   func(steps.Env) string // its namespace; nil: cluster-scoped
	name string
	fits func(context.Context, steps.Env) (bool, error)
}

// OthersStay marks that an unmanaged webhook that does what is required is kept.
func (wholeDoer) OthersStay() {}

func (d wholeDoer) space(e steps.Env) string {
	if d.in == nil {
		return ""
	}
	return d.in(e)
}

// theirs returns an unmanaged object, or nil if there is none. fits means that it can be kept.
func (d wholeDoer) theirs(
	ctx context.Context, e steps.Env,
) (found *metav1.PartialObjectMetadata, fits bool, err error) {
	all, err := e.Cluster.Find(ctx, d.kind, d.space(e), cluster.Selector{Fields: "metadata.name=" + d.name})
	if err != nil || len(all) == 0 || inventory.CreatedBy(all[0].Annotations) != "" || triedHere(e, all[0].Labels) {
		return nil, false, err
	}
	fits, err = d.fits(ctx, e)
	return &all[0], fits, err
}

// Plan shows what is kept and what is recreated.
func (d wholeDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	other, fits, err := d.theirs(ctx, e)
	if err != nil && !apierrors.IsForbidden(err) { // reported with all other missing permissions
		return steps.Change{}, err
	}
	c, err := d.Manifest.Plan(ctx, e)
	if other == nil || err != nil || len(c.Items) == 0 {
		return c, err
	}
	if fits {
		return left(c.Items[0].What, "unmanaged, and already as required"), nil
	}
	c.Items[0].Verb, c.Items[0].Conflicts = steps.Replace, nil
	c.Items[0].Note = "the unmanaged object is deleted and recreated; an undo does not restore it"
	c.Permissions = append(
		c.Permissions,
		permission.Rule{Verb: "delete", Group: d.kind.Group, Resource: d.kind.Resource, Namespace: d.space(e), Name: d.name},
	)
	return c, nil
}

// Do creates the object if necessary.
func (d wholeDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	other, fits, err := d.theirs(ctx, e)
	if err != nil || fits {
		return err
	}
	if other == nil {
		return d.Manifest.Do(ctx, e, say)
	}
	what := d.kind.Resource + " " + d.name
	if !e.Apply.Replace {
		return fmt.Errorf("%s is unmanaged and would have to be deleted and recreated, which was not confirmed", what)
	}
	if err := e.Cluster.Delete(ctx, d.kind, d.space(e), d.name, other.UID); err != nil {
		return err
	}
	if err := e.Cluster.Gone(ctx, d.kind, d.space(e), d.name, other.UID); err != nil {
		return err
	}
	say.Did(steps.Delete, what, "")
	return d.Manifest.Do(ctx, e, say)
}

// programFits reports whether the existing Deployment runs the answered program.
func programFits(ctx context.Context, e steps.Env) (bool, error) {
	s, err := theExtension(ctx, e)
	if err != nil {
		return false, err
	}
	if s.image != e.Answers.Text("extension.image") || s.makesKeystore() {
		return false, nil
	}
	if runsUpstream(e) {
		return s.program == byUpstream, nil
	}
	if s.program != byCarrick || (usesWebhook(e) && carrickConfig(e, s).Status != steps.Pass) {
		return false, nil
	}
	return !followsProfiles(e) || s.follows == pspRole, nil
}

// serviceFits reports whether the existing Service points to the pods' port.
func serviceFits(ctx context.Context, e steps.Env) (bool, error) {
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, extensionSpace(e), extensionName)
	if err != nil {
		return false, err
	}
	leads := slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == 443 && (p.TargetPort == intstr.FromInt(hookPort(e)) || p.TargetPort == intstr.FromString("https"))
	})
	return leads && len(s.Spec.Selector) == 1 && s.Spec.Selector["app"] == extensionName, nil
}

// hookFits reports whether the existing webhook matches the answers and trusts the expected CA.
func hookFits(ctx context.Context, e steps.Env) (bool, error) {
	for _, look := range []func(context.Context, steps.Env) steps.Result{webhookRules, certBundle} {
		if r := look(ctx, e); r.Status != steps.Pass {
			return false, r.Err
		}
	}
	return true, nil
}
