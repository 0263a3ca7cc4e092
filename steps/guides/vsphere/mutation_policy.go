package vsphere

import (
	"context"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policyDoer makes the policy and binds it. One of somebody else's that does the same
// stays theirs, and is only bound where it is not.
type policyDoer struct{ action.Manifest }

// OthersStay: a policy of somebody else that does what is to be done is left.
func (policyDoer) OthersStay() {}

// Plan leaves what is somebody else's and as it should be.
func (d policyDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	policy, binding, err := theirPolicy(ctx, e)
	switch {
	case err != nil && !apierrors.IsForbidden(err): // that is told with all other missing rights
		return steps.Change{}, err
	case policy && binding:
		return left("MutatingAdmissionPolicy "+policyName, "somebody else's, and it does what is to be done"), nil
	}
	return d.of(policy).Plan(ctx, e)
}

// Do makes what is to be made of it.
func (d policyDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	policy, binding, err := theirPolicy(ctx, e)
	if err != nil || (policy && binding) {
		return err
	}
	return d.of(policy).Do(ctx, e, say)
}

// of is what carrick makes: all, or the binding of somebody else's policy.
func (d policyDoer) of(theirs bool) action.Manifest {
	if theirs {
		return d.Also()[0]
	}
	return d.Manifest
}

// Also is what is made where the policy itself is somebody else's.
func (d policyDoer) Also() []action.Manifest {
	return []action.Manifest{{File: "policy-binding.yaml", Version: d.Version}}
}

// theirPolicy tells whether somebody else has made the policy as it should be, and
// whether they have bound it.
func theirPolicy(ctx context.Context, e steps.Env) (policy, binding bool, err error) {
	policies, bindings, err := policyKinds(e)
	if err != nil {
		return false, false, err
	}
	p, err := check.Get[admissionv1.MutatingAdmissionPolicy](ctx, e.Cluster, policies, "", policyName)
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	key, value := namespaceSelector(e)
	policy = !triedHere(e, p.Labels) && wrongPolicy(e, p) == "" && oddPolicy(e, p, key, value) == ""
	b, err := check.Get[admissionv1.MutatingAdmissionPolicyBinding](ctx, e.Cluster, bindings, "", policyName)
	if apierrors.IsNotFound(err) {
		return policy, false, nil
	}
	return policy, err == nil && !triedHere(e, b.Labels) && bindsWhole(b), err
}

// bindsWhole tells whether a binding puts the policy in force wherever it selects.
func bindsWhole(b *admissionv1.MutatingAdmissionPolicyBinding) bool {
	return b.Spec.PolicyName == policyName && !narrows(b.Spec.MatchResources)
}

// narrows reports whether matchResources of a binding exclude any object. The API server sets matchPolicy and empty
// selectors, which exclude none (k8s.io/apiserver: pkg/admission/plugin/policy/matching/matching.go).
func narrows(m *admissionv1.MatchResources) bool {
	return m != nil && (len(m.ResourceRules)+len(m.ExcludeResourceRules) > 0 ||
		!selectsAll(m.NamespaceSelector) || !selectsAll(m.ObjectSelector))
}

func selectsAll(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}
