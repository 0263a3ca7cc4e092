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

// policyDoer creates the policy and its binding. An unmanaged policy that does the same is kept.
// carrick then only creates the binding if it is missing.
type policyDoer struct{ action.Manifest }

// OthersStay marks that an unmanaged policy that does what is required is kept.
func (policyDoer) OthersStay() {}

// Plan keeps unmanaged objects that are correct.
func (d policyDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	policy, binding, err := theirPolicy(ctx, e)
	switch {
	case err != nil && !apierrors.IsForbidden(err): // reported with all other missing permissions
		return steps.Change{}, err
	case policy && binding:
		return left("MutatingAdmissionPolicy "+policyName, "unmanaged, and already as required"), nil
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

// of returns what carrick creates: all objects, or only the binding of an unmanaged policy.
func (d policyDoer) of(theirs bool) action.Manifest {
	if theirs {
		return d.Also()[0]
	}
	return d.Manifest
}

// Also returns what is created if the policy itself is unmanaged.
func (d policyDoer) Also() []action.Manifest {
	return []action.Manifest{{File: "policy-binding.yaml", Version: d.Version}}
}

// theirPolicy reports whether a correct unmanaged policy exists, and whether it has an unmanaged
// binding.
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

// bindsWhole reports whether a binding applies the policy to all objects that the policy selects.
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
