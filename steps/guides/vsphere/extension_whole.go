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

// wholeDoer creates an object that carrick manages as a whole. If an unmanaged object with the same name exists, for
// example from the published guide, and fits returns true, wholeDoer keeps it. Otherwise wholeDoer deletes and
// recreates the object, because an update would leave unwanted parts, such as an init container or a second webhook.
type wholeDoer struct {
	action.Manifest
	kind schema.GroupVersionResource
	in   func(steps.Env) string // namespace of the object; nil: cluster-scoped
	name string
	fits func(context.Context, steps.Env) (bool, error)
}

// OthersStay implements action.OthersStay, because wholeDoer can keep an unmanaged object.
func (wholeDoer) OthersStay() {}

func (d wholeDoer) space(e steps.Env) string {
	if d.in == nil {
		return ""
	}
	return d.in(e)
}

// theirs returns the existing unmanaged object, or nil if none exists. fits reports whether the
// object can be kept.
func (d wholeDoer) theirs(
	ctx context.Context, e steps.Env,
) (found *metav1.PartialObjectMetadata, fits bool, err error) {
	all, err := e.Cluster.Find(ctx, d.kind, d.space(e), cluster.Selector{Fields: "metadata.name=" + d.name})
	if err != nil || len(all) == 0 || inventory.CreatedBy(all[0].Annotations) != "" || ofThisLink(e, all[0].Labels) {
		return nil, false, err
	}
	fits, err = d.fits(ctx, e)
	return &all[0], fits, err
}

// Plan keeps an unmanaged object that fits, and recreates any other unmanaged object.
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
		return left(c.Items[0].What, "unmanaged, and already correct"), nil
	}
	c.Items[0].Verb, c.Items[0].Conflicts = steps.Replace, nil
	c.Items[0].Note = "the unmanaged object is deleted and recreated; an undo does not restore it"
	c.Permissions = append(
		c.Permissions,
		permission.Rule{Verb: "delete", Group: d.kind.Group, Resource: d.kind.Resource, Namespace: d.space(e), Name: d.name},
	)
	return c, nil
}

// Do creates the object, or recreates an unmanaged object that does not fit.
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

// programFits reports whether the existing Deployment runs the program and image that the answers
// configure.
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

// serviceFits reports whether the existing Service routes port 443 to the extension's pods.
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
