package vsphere

import (
	"context"
	"errors"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

// kyvernoHook is the label of the webhooks that Kyverno creates for its policies
// (kyverno/kyverno: api/kyverno/constants.go).
const kyvernoHook = "webhook.kyverno.io/managed-by"

// mutatePath is the URL path of the webhook, in the published guide and in carrick.
const mutatePath = "/pvc/mutate"

// mutator is a webhook or policy that is called for each new claim.
type mutator struct {
	by       string // the corresponding value of mutation.method; "": none
	kind     string
	name     string
	resource string // kubectl's name for the kind
	sure     bool   // it sets the StorageClass; false: its effect is unknown
	wide     bool   // it is called for all new objects
	told     bool   // it only runs Kyverno policies, which are listed as separate mutators
	service  *admissionv1.ServiceReference

	selects []metav1.LabelSelector // namespace selectors
	fail    string                 // failurePolicy
	text    string                 // CEL expressions of a policy
}

func (m mutator) String() string { return m.kind + " " + clean.Text(m.name) }

// mutators returns the webhooks and policies that are called for new claims:
// MutatingAdmissionPolicies, then webhooks, then Kyverno policies.
func mutators(ctx context.Context, e steps.Env) ([]mutator, error) {
	found := make([][]mutator, 3)
	var looks []func() error
	for i, look := range []func(
		context.Context, steps.Env,
	) ([]mutator, error){policyMutators, webhookMutators, kyvernoMutators} {
		looks = append(looks, func() (err error) {
			found[i], err = look(ctx, e)
			return err
		})
	}
	err := check.Together(looks...)
	return slices.Concat(found...), err
}

// rulesCoverClaims reports whether rules match the creation of claims. named is true if a matching rule names claims
// instead of using a wildcard.
func rulesCoverClaims(rules []admissionv1.RuleWithOperations) (is, named bool) {
	for _, r := range rules {
		if !covers(r.APIGroups, "") || !covers(r.APIVersions, "v1") ||
			(r.Scope != nil && *r.Scope == admissionv1.ClusterScope) {
			continue
		}
		if !slices.Contains(r.Operations, admissionv1.Create) && !slices.Contains(r.Operations, admissionv1.OperationAll) {
			continue
		}
		switch {
		case slices.Contains(r.Resources, "persistentvolumeclaims"):
			is, named = true, true
		case slices.Contains(r.Resources, "*"), slices.Contains(r.Resources, "*/*"):
			is = true
		}
	}
	return is, named
}

func covers(list []string, v string) bool {
	return slices.Contains(list, v) || slices.Contains(list, "*")
}

// policyMutators returns the MutatingAdmissionPolicies that match new claims and have a binding.
// Without a binding, a policy has no effect.
func policyMutators(ctx context.Context, e steps.Env) ([]mutator, error) {
	policies, bindings, err := policyKinds(e)
	if steps.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e.Cluster.StartList("", policies, bindings)
	all, err := check.List[admissionv1.MutatingAdmissionPolicy](ctx, e.Cluster, policies, "", cluster.Selector{})
	if err != nil {
		return nil, notServed(err)
	}
	bound, err := check.List[admissionv1.MutatingAdmissionPolicyBinding](ctx, e.Cluster, bindings, "", cluster.Selector{})
	if err != nil {
		return nil, notServed(err)
	}
	var out []mutator
	for _, p := range all {
		c := p.Spec.MatchConstraints
		if c == nil ||
			!slices.ContainsFunc(
				bound, func(b *admissionv1.MutatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == p.Name },
			) {
			continue
		}
		var rules []admissionv1.RuleWithOperations
		for _, r := range c.ResourceRules {
			rules = append(rules, r.RuleWithOperations)
		}
		is, named := rulesCoverClaims(rules)
		if !is {
			continue
		}
		m := mutator{
			by: byPolicy, kind: "MutatingAdmissionPolicy", name: p.Name, resource: "mutatingadmissionpolicy", wide: !named,
			text: policyText(p),
		}
		m.sure = strings.Contains(mutationText(p), "storageClassName")
		if c.NamespaceSelector != nil {
			m.selects = append(m.selects, *c.NamespaceSelector)
		}
		if p.Spec.FailurePolicy != nil {
			m.fail = string(*p.Spec.FailurePolicy)
		}
		out = append(out, m)
	}
	return out, nil
}

// policyText returns the CEL expressions of a policy's mutations and conditions as one string.
func policyText(p *admissionv1.MutatingAdmissionPolicy) string {
	out := []string{mutationText(p)}
	for _, c := range p.Spec.MatchConditions {
		out = append(out, c.Expression)
	}
	return strings.Join(out, "\n")
}

// mutationText returns the CEL expressions of a policy's mutations as one string.
func mutationText(p *admissionv1.MutatingAdmissionPolicy) string {
	var out []string
	for _, m := range p.Spec.Mutations {
		if m.ApplyConfiguration != nil {
			out = append(out, m.ApplyConfiguration.Expression)
		}
		if m.JSONPatch != nil {
			out = append(out, m.JSONPatch.Expression)
		}
	}
	return strings.Join(out, "\n")
}

func webhookMutators(ctx context.Context, e steps.Env) ([]mutator, error) {
	all, err := check.List[admissionv1.MutatingWebhookConfiguration](
		ctx, e.Cluster, check.MutatingWebhooks, "", cluster.Selector{},
	)
	if err != nil {
		return nil, err
	}
	var out []mutator
	for _, config := range all {
		for _, w := range config.Webhooks {
			is, named := rulesCoverClaims(w.Rules)
			if !is {
				continue
			}
			m := mutator{
				kind: "MutatingWebhookConfiguration", name: config.Name, resource: "mutatingwebhookconfiguration", wide: !named,
				told: config.Labels[kyvernoHook] == byKyverno,
			}
			if s := w.ClientConfig.Service; s != nil {
				m.service = s
				m.sure = named && s.Path != nil && *s.Path == mutatePath
			}
			if m.sure {
				m.by = byWebhook
			}
			if w.NamespaceSelector != nil {
				m.selects = append(m.selects, *w.NamespaceSelector)
			}
			if w.FailurePolicy != nil {
				m.fail = string(*w.FailurePolicy)
			}
			out = append(out, m)
		}
	}
	return out, nil
}

func notServed(err error) error {
	if errors.Is(err, failure.ErrNotServed) {
		return nil
	}
	return err
}
