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

// policyDoer creates the policy and its binding. It keeps an equivalent unmanaged policy. In that case it creates only
// the binding, if the binding does not exist.
type policyDoer struct{ action.Manifest }

// OthersStay implements action.OthersStay, because policyDoer can keep an unmanaged policy.
func (policyDoer) OthersStay() {}

// Plan keeps unmanaged objects that are correct.
func (d policyDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	policy, binding, err := theirPolicy(ctx, e)
	switch {
	case err != nil && !apierrors.IsForbidden(err): // reported with all other missing permissions
		return steps.Change{}, err
	case policy && binding:
		return left("MutatingAdmissionPolicy "+policyName, "unmanaged, and already correct"), nil
	}
	return d.of(policy).Plan(ctx, e)
}

// Do creates the missing objects.
func (d policyDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	policy, binding, err := theirPolicy(ctx, e)
	if err != nil || (policy && binding) {
		return err
	}
	return d.of(policy).Do(ctx, e, say)
}

// of returns the manifest of the policy and its binding, or of the binding alone if the policy is
// unmanaged.
func (d policyDoer) of(theirs bool) action.Manifest {
	if theirs {
		return d.Also()[0]
	}
	return d.Manifest
}

// Also returns the manifest of the binding alone, which carrick applies if the policy is unmanaged.
func (d policyDoer) Also() []action.Manifest {
	return []action.Manifest{{File: "policy-binding.yaml", Version: d.Version}}
}

// theirPolicy reports whether another tool or link has created a correct policy and a correct binding.
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
	policy = !ofThisLink(e, p.Labels) && wrongPolicy(e, p) == "" && oddPolicy(e, p, key, value) == ""
	b, err := check.Get[admissionv1.MutatingAdmissionPolicyBinding](ctx, e.Cluster, bindings, "", policyName)
	if apierrors.IsNotFound(err) {
		return policy, false, nil
	}
	return policy, err == nil && !ofThisLink(e, b.Labels) && bindsWhole(b), err
}

// bindsWhole reports whether b applies the policy to all objects that the policy selects.
func bindsWhole(b *admissionv1.MutatingAdmissionPolicyBinding) bool {
	return b.Spec.PolicyName == policyName && !narrows(b.Spec.MatchResources)
}

// narrows reports whether m, the matchResources of a binding, excludes any object. The API server sets matchPolicy and
// empty selectors, which exclude no objects (k8s.io/apiserver: pkg/admission/plugin/policy/matching/matching.go).
func narrows(m *admissionv1.MatchResources) bool {
	return m != nil && (len(m.ResourceRules)+len(m.ExcludeResourceRules) > 0 ||
		!selectsAll(m.NamespaceSelector) || !selectsAll(m.ObjectSelector))
}

func selectsAll(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}
