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
			Name: "policy-served", Title: "the cluster serves MutatingAdmissionPolicies", On: steps.Local, When: usesPolicy,
			Needs: []string{"signed-in"},
			Why: "they are in v1 from Kubernetes 1.36 on; in v1beta1 (1.34) they have to be turned on, which a Tanzu " +
				"guest does not",
			References: []string{mutatingPolicySource}, Run: policyServed,
		},
		{
			Name: "policy-there", Title: "the policy that exchanges claims' class is there, and bound", On: steps.Local,
			When: usesPolicy, Needs: []string{"policy-served"}, FixedBy: "policy",
			Why: "a policy without a binding does nothing; one without a selector is asked about every claim of " +
				"the cluster",
			References: []string{mutatingPolicySource}, Run: policyThere,
		},
		{
			Name: "one-mutator", Title: "nobody else exchanges the class of claims", On: steps.Local,
			Needs:      []string{"signed-in"},
			Why:        "where two do, the one that comes last wins, and the order is nobody's promise",
			References: []string{mutatorSource, mutatingPolicySource, kyvernoSource}, Run: oneMutator,
		},
		{
			Name: "source-class", Title: "the form for notebooks asks for volumes that there are", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Kubeflow's form says of which class a notebook's volume is and how many pods write to it: what is " +
				"named at the source has to be exchanged by nobody",
			References: []string{
				"kubeflow/notebooks: components/crud-web-apps/jupyter/manifests/base/configs/spawner_ui_config.yaml",
			}, Run: sourceClass,
		},
	}
}

func policyServed(_ context.Context, e steps.Env) steps.Result {
	version, err := e.Own.Text("serves-map")
	if steps.IsAbsent(err) {
		return steps.Failed(err.Error(), answer(e, "mutation.by", byWebhook))
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
			"there is no MutatingAdmissionPolicyBinding "+policyName+": without it the policy does nothing", "",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	switch {
	case b.Spec.PolicyName != policyName:
		return steps.Failed(fmt.Sprintf("MutatingAdmissionPolicyBinding %s binds the policy %s",
			policyName, clean.Text(b.Spec.PolicyName)), "")
	case !bindsWhole(b):
		return steps.Failed(fmt.Sprintf("MutatingAdmissionPolicyBinding %s restricts the policy by its matchResources: "+
			"other claims keep their class", policyName), "")
	}
	if wrong := wrongPolicy(e, p); wrong != "" {
		return steps.Failed("MutatingAdmissionPolicy "+policyName+" "+wrong, "")
	}
	key, value := namespaceSelector(e)
	if odd := oddPolicy(e, p, key, value); odd != "" {
		return steps.Warned("MutatingAdmissionPolicy "+policyName+" "+odd, "")
	}
	return steps.Passed(
		"MutatingAdmissionPolicy %s: to %s, in namespaces with %s=%s; %s", policyName, sharedClassName(e), key, value,
		*p.Spec.FailurePolicy,
	)
}

// wrongPolicy says what keeps a policy from doing what it is there for; "":
// nothing.
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
		return "is not asked about claims that are made"
	case !slices.Contains(quotedIn(text), sharedClassName(e)):
		return "does not give claims the class " + sharedClassName(e)
	case !strings.Contains(text, "ReadWriteMany"):
		return "exchanges the class of claims that one node writes to, too"
	case !strings.Contains(conditions, "storageClassName"):
		return "exchanges every class, and \"\" among them"
	}
	for _, name := range e.Answers.List("mutation.from") {
		if name != sharedClassName(e) && !slices.Contains(quotedIn(conditions), name) {
			return "does not exchange the class " + name
		}
	}
	return ""
}

// quotedIn are the names in quotes in a text of CEL.
func quotedIn(text string) []string {
	var out []string
	for _, q := range celQuoted.FindAllStringSubmatch(text, -1) {
		out = append(out, q[1]+q[2])
	}
	return out
}

// oddPolicy says in what a policy is not as it was answered, though it may do; "":
// in nothing.
func oddPolicy(e steps.Env, p *admissionv1.MutatingAdmissionPolicy, key, value string) string {
	s := p.Spec.MatchConstraints.NamespaceSelector
	switch fail := p.Spec.FailurePolicy; {
	case s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0:
		return "has no selector of namespaces: it is asked about every claim of the cluster"
	case len(s.MatchLabels) != 1 || s.MatchLabels[key] != value || len(s.MatchExpressions) > 0:
		return fmt.Sprintf("selects other namespaces than those with %s=%s", key, value)
	case fail == nil || string(*fail) != e.Answers.Text("mutation.fail"):
		return "has not the failurePolicy " + e.Answers.Text("mutation.fail")
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
		return "is written in other words than carrick's; what it does, the step function tries"
	}
	return ""
}

// plainCEL is an expression without what makes no difference to claims: the kind
// of quotes, and whether access modes are asked for before they are read, which
// every claim has.
func plainCEL(expression string) string {
	return strings.TrimPrefix(strings.ReplaceAll(expression, "'", `"`), "has(object.spec.accessModes) && ")
}

// oneMutator sorts what is asked about claims: what was chosen, others that do the
// same, those that may, and those that are asked about everything.
func oneMutator(ctx context.Context, e steps.Env) steps.Result {
	all, err := mutators(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	by := e.Answers.Text("mutation.by")
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
	does := "nobody exchanges the class of claims"
	if len(right) > 0 {
		does = right[0].String() + " exchanges the class of claims"
	}
	switch {
	case len(others) > 0 && len(right) > 0:
		return steps.Failed(fmt.Sprintf("%s, and so does %s", does, mutatorWords(others)), deleting(e, others[0]))
	case len(others) > 0:
		return steps.Failed(
			fmt.Sprintf("%s exchanges the class of claims, and mutation.by is %s", mutatorWords(others), by),
			answer(e, "mutation.by", others[0].by)+", or: "+deleting(e, others[0]),
		)
	case len(may) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"%s; %s is asked about each new claim, too, and what it does to it can't be told", does, mutatorWords(may),
			),
			fmt.Sprintf(
				"%s get %s %s -o yaml    # does it change spec.storageClassName? What comes of a claim, the step function tries",
				e.Kubectl(), may[0].resource, steps.Quoted(may[0].name),
			),
		)
	case len(wide) > 0:
		return steps.Passed("%s; asked about everything that is made are %s", does, mutatorWords(wide))
	}
	return steps.Passed("%s, and nobody else is asked about new claims", does)
}

// rank puts what has carrick's name first.
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
