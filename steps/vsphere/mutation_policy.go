package vsphere

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/steps"
	"carrick/steps/check"
)

// policyDoer makes the policy, where nobody else has one that does the same: that
// stays theirs.
type policyDoer struct{ steps.Manifest }

// Plan leaves what is somebody else's and as it should be.
func (d policyDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	theirs, err := theirPolicy(ctx, e)
	if err != nil && !apierrors.IsForbidden(err) { // that is told with all other missing rights
		return steps.Change{}, err
	}
	if theirs {
		return left("MutatingAdmissionPolicy "+policyName, "somebody else's, and it does what is to be done"), nil
	}
	return d.Manifest.Plan(ctx, e)
}

// Do makes it, where it is to be made.
func (d policyDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	theirs, err := theirPolicy(ctx, e)
	if err != nil || theirs {
		return err
	}
	return d.Manifest.Do(ctx, e, say)
}

// theirPolicy tells whether somebody else has made the policy and its binding as
// they should be.
func theirPolicy(ctx context.Context, e steps.Env) (bool, error) {
	policies, bindings, err := policyKinds(e)
	if err != nil {
		return false, err
	}
	p, err := check.Get[admissionv1.MutatingAdmissionPolicy](ctx, e.Cluster, policies, "", policyName)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b, err := check.Get[admissionv1.MutatingAdmissionPolicyBinding](ctx, e.Cluster, bindings, "", policyName)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	key, value := selector(e)
	return !mine(e, p.Labels) && !mine(e, b.Labels) && bindsWhole(b) && wrongPolicy(e, p) == "" && oddPolicy(e, p, key, value) == "", nil
}

// bindsWhole tells whether a binding puts the policy in force wherever it selects.
func bindsWhole(b *admissionv1.MutatingAdmissionPolicyBinding) bool {
	return b.Spec.PolicyName == policyName && b.Spec.MatchResources == nil
}
