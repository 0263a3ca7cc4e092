package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	mutatingPolicySource = "kubernetes/enhancements: keps/sig-api-machinery/3962-mutating-admission-policies"
	mutatorSource        = page + " (additional/webhook.yaml, src/main/java/de/keeyzar/pvcmutator)"
	kyvernoSource        = "kyverno/kyverno: api/kyverno/v1"
)

func mutationChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "policy-served", Title: "The cluster serves MutatingAdmissionPolicies", On: steps.Local, When: usesPolicy,
			Needs: []string{"signed-in"},
			Why: "The API is v1 from Kubernetes 1.36 on. v1beta1 (1.34) must be enabled explicitly, which a Tanzu guest " +
				"does not do.",
			References: []string{mutatingPolicySource}, Run: policyServed,
		},
		{
			Name: "policy-exists", Title: "The StorageClass policy exists and is bound", On: steps.Local,
			When: usesPolicy, Needs: []string{"policy-served"}, FixedBy: "policy",
			Why: "Without a binding, a policy has no effect. Without a selector, a policy applies to every claim in " +
				"the cluster.",
			References: []string{mutatingPolicySource}, Run: policyThere,
		},
		{
			Name: "one-mutator", Title: "Nothing else sets the StorageClass of claims", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "If several policies or webhooks set the StorageClass, the last call wins, and their order is not " +
				"guaranteed.",
			References: []string{mutatorSource, mutatingPolicySource, kyvernoSource}, Run: oneMutator,
		},
		{
			Name: "source-class", Title: "The notebook form requests a suitable StorageClass", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Kubeflow's form sets the StorageClass and access mode of notebook volumes. A StorageClass in the form " +
				"needs no policy or webhook.",
			References: []string{
				"kubeflow/notebooks: components/crud-web-apps/jupyter/manifests/base/configs/spawner_ui_config.yaml",
			}, Run: sourceClass,
		},
	}
}

func policyServed(_ context.Context, e steps.Env) steps.Result {
	version, err := e.Own.Text("serves-map")
	if steps.IsAbsent(err) {
		return steps.Failed(err.Error(), answer(e, "mutation.method", byWebhook))
	}
	if err != nil {
		return steps.Errored(err)
	}
	return steps.Passed("admissionregistration.k8s.io/%s", version)
}

func policyThere(ctx context.Context, e steps.Env) steps.Result {
	policies, bindings, err := policyKinds(e)
	if err != nil {
		return steps.Errored(err)
	}
	p, err := check.Get[admissionv1.MutatingAdmissionPolicy](ctx, e.Cluster, policies, "", policyName)
	if err != nil {
		return check.Missing(err, "MutatingAdmissionPolicy "+policyName, "")
	}
	b, err := check.Get[admissionv1.MutatingAdmissionPolicyBinding](ctx, e.Cluster, bindings, "", policyName)
	if apierrors.IsNotFound(err) {
		return steps.Failed(
			"MutatingAdmissionPolicyBinding "+policyName+" does not exist, so the policy has no effect", "",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	switch {
	case b.Spec.PolicyName != policyName:
		return steps.Failed(fmt.Sprintf("MutatingAdmissionPolicyBinding %s binds another policy: %s",
			policyName, clean.Text(b.Spec.PolicyName)), "")
	case !bindsWhole(b):
		return steps.Failed(
			fmt.Sprintf(
				"MutatingAdmissionPolicyBinding %s restricts the policy with matchResources, so other claims keep their "+
					"StorageClass",
				policyName,
			),
			"",
		)
	}
	if wrong := wrongPolicy(e, p); wrong != "" {
		return steps.Failed("MutatingAdmissionPolicy "+policyName+" "+wrong, "")
	}
	key, value := namespaceSelector(e)
	if odd := oddPolicy(e, p, key, value); odd != "" {
		return steps.Warned("MutatingAdmissionPolicy "+policyName+" "+odd, "")
	}
	return steps.Passed(
		"MutatingAdmissionPolicy %s sets StorageClass %s in namespaces with %s=%s, failurePolicy %s", policyName,
		sharedClassName(e),
		key, value,
		*p.Spec.FailurePolicy,
	)
}

// wrongPolicy describes why p does not set the StorageClass or affects more than intended. It returns "" if p is
// correct.
func wrongPolicy(e steps.Env, p *admissionv1.MutatingAdmissionPolicy) string {
	var rules []admissionv1.RuleWithOperations
	if c := p.Spec.MatchConstraints; c != nil {
		for _, r := range c.ResourceRules {
			rules = append(rules, r.RuleWithOperations)
		}
	}
	text, conditions := policyText(p), ""
	for _, c := range p.Spec.MatchConditions {
		conditions += c.Expression + "\n"
	}
	switch is, _ := rulesCoverClaims(rules); {
	case !is:
		return "has no rule for the creation of claims"
	case !slices.Contains(quotedIn(text), sharedClassName(e)):
		return "does not set StorageClass " + sharedClassName(e)
	case !strings.Contains(text, "ReadWriteMany"):
		return "also changes the StorageClass of claims that are not ReadWriteMany"
	case !strings.Contains(conditions, "storageClassName"):
		return "replaces every StorageClass, including \"\""
	}
	for _, name := range e.Answers.List("mutation.replaces") {
		if name != sharedClassName(e) && !slices.Contains(quotedIn(conditions), name) {
			return "does not replace StorageClass " + name
		}
	}
	return ""
}

// quotedIn returns the quoted names in text, a CEL expression.
func quotedIn(text string) []string {
	var out []string
	for _, q := range celQuoted.FindAllStringSubmatch(text, -1) {
		out = append(out, q[1]+q[2])
	}
	return out
}

// oddPolicy describes how p, a working policy, differs from the answers. It returns "" if it does not differ.
func oddPolicy(e steps.Env, p *admissionv1.MutatingAdmissionPolicy, key, value string) string {
	s := p.Spec.MatchConstraints.NamespaceSelector
	switch fail := p.Spec.FailurePolicy; {
	case s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0:
		return "has no namespaceSelector, so it applies to every claim in the cluster"
	case len(s.MatchLabels) != 1 || s.MatchLabels[key] != value || len(s.MatchExpressions) > 0:
		return fmt.Sprintf("does not select exactly the namespaces with %s=%s", key, value)
	case fail == nil || string(*fail) != e.Answers.Text("mutation.failure-policy"):
		return "does not have failurePolicy " + e.Answers.Text("mutation.failure-policy")
	}
	var conditions []string
	for _, c := range p.Spec.MatchConditions {
		conditions = append(conditions, plainCEL(c.Expression))
	}
	m := p.Spec.Mutations
	want := []string{plainCEL(sharedClaim), plainCEL(unnamedVolume), plainCEL(exchanged(e))}
	slices.Sort(conditions)
	slices.Sort(want)
	if !slices.Equal(conditions, want) || len(m) != 1 || m[0].ApplyConfiguration == nil ||
		plainCEL(m[0].ApplyConfiguration.Expression) != plainCEL(assigned(e)) {
		return "differs from carrick's policy in wording. Step function tests the effect"
	}
	return ""
}

// plainCEL normalizes a CEL expression for comparison. It uses double quotes and removes a leading test for access
// modes, because every claim has access modes.
func plainCEL(expression string) string {
	return strings.TrimPrefix(strings.ReplaceAll(expression, "'", `"`), "has(object.spec.accessModes) && ")
}

// oneMutator verifies that only the method in mutation.method sets the StorageClass of claims. It warns about mutators
// whose effect is unknown, unless they are called for all new objects.
func oneMutator(ctx context.Context, e steps.Env) steps.Result {
	all, err := mutators(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	by := e.Answers.Text("mutation.method")
	slices.SortStableFunc(all, func(a, b mutator) int { return strings.Compare(a.rank(), b.rank()) })
	var right, others, may, wide []mutator
	for _, m := range all {
		switch {
		case m.told:
		case m.sure && m.by == by && len(right) == 0:
			right = append(right, m)
		case m.sure:
			others = append(others, m)
		case m.wide:
			wide = append(wide, m)
		default:
			may = append(may, m)
		}
	}
	does := "nothing sets the StorageClass of claims"
	if len(right) > 0 {
		does = right[0].String() + " sets the StorageClass of claims"
	}
	switch {
	case len(others) > 0 && len(right) > 0:
		return steps.Failed(fmt.Sprintf("%s, and so does %s", does, mutatorWords(others)), deleting(e, others[0]))
	case len(others) > 0:
		return steps.Failed(
			fmt.Sprintf("%s sets the StorageClass of claims, but mutation.method is %s", mutatorWords(others), by),
			answer(e, "mutation.method", others[0].by)+", or: "+deleting(e, others[0]),
		)
	case len(may) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"%s. %s is also called for each new claim, but carrick cannot tell with what effect", does, mutatorWords(may),
			),
			fmt.Sprintf(
				"%s get %s %s -o yaml    # does it change spec.storageClassName? Step function tests the effect on claims",
				e.Kubectl(), may[0].resource, steps.Quoted(may[0].name),
			),
		)
	case len(wide) > 0:
		return steps.Passed("%s. Also called, for all new objects: %s", does, mutatorWords(wide))
	}
	return steps.Passed("%s, and no other policy or webhook is called for new claims", does)
}

// rank returns the sort key of m. carrick's own policy comes first.
func (m mutator) rank() string {
	if m.name == policyName {
		return ""
	}
	return m.name
}

func mutatorWords(all []mutator) string {
	var names []string
	for _, m := range all {
		if !slices.Contains(names, m.String()) {
			names = append(names, m.String())
		}
	}
	return check.Some(names)
}

func deleting(e steps.Env, m mutator) string {
	namespace, name, found := strings.Cut(m.name, "/")
	if !found {
		return fmt.Sprintf("%s delete %s %s", e.Kubectl(), m.resource, steps.Quoted(m.name))
	}
	return fmt.Sprintf("%s -n %s delete %s %s", e.Kubectl(), steps.Quoted(namespace), m.resource, steps.Quoted(name))
}
