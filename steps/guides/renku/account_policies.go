package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func accountPolicies() steps.Action {
	return steps.Action{
		Name: "account-policies", Title: "Deny Renku's kubeconfig the use of other ServiceAccounts",
		On: steps.Remote, When: limitsAccounts,
		Doer: action.Manifest{File: "account-policies.yaml", Values: action.Values{
			"policy":         func(_ context.Context, e steps.Env) (any, error) { return policyPrefix(e), nil },
			"user":           func(_ context.Context, e steps.Env) (any, error) { return userName(e), nil },
			"session-rules":  func(_ context.Context, e steps.Env) (any, error) { return sessionRules(e), nil },
			"workload-rules": func(_ context.Context, e steps.Env) (any, error) { return workloadRules(e), nil },
		}},
	}
}

// sessionRules returns the validations that apply when Renku's kubeconfig writes an
// AmaltheaSession.
func sessionRules(e steps.Env) []any {
	rules := []any{denial(accountRule(e, "object.spec"),
		"sessions must run as the default ServiceAccount or as the service_account_name of this cluster in Renku")}
	if !mountsConnectors(e) {
		rules = append(rules,
			denial("!has(object.spec.dataSources) || size(object.spec.dataSources) == 0",
				"sessions must not have data connectors on this cluster"),
			denial(volumesRule("object.spec", "extraVolumes"), noDriverVolumes))
	}
	return rules
}

// workloadRules returns the validations that apply when Renku's kubeconfig changes a StatefulSet or
// a Deployment.
func workloadRules(e steps.Env) []any {
	const pod = "object.spec.template.spec"
	rules := []any{denial(accountRule(e, pod),
		"Renku's kubeconfig can change only workloads that run as the sessions' ServiceAccount")}
	if !mountsConnectors(e) {
		rules = append(rules, denial(volumesRule(pod, "volumes"), noDriverVolumes))
	}
	return rules
}

func denial(expression, message string) map[string]any {
	return map[string]any{"expression": expression, "message": message, "reason": "Forbidden"}
}

// accountRule returns a CEL expression that allows only the ServiceAccounts of sessions. spec is
// the CEL path of a spec with the field serviceAccountName.
func accountRule(e steps.Env, spec string) string {
	var quoted []string
	for _, name := range sessionAccounts(e) {
		quoted = append(quoted, "'"+name+"'")
	}
	return fmt.Sprintf("!has(%[1]s.serviceAccountName) || %[1]s.serviceAccountName in [%[2]s]",
		spec, strings.Join(quoted, ", "))
}

const noDriverVolumes = "Renku's kubeconfig cannot create pods with CSI or ephemeral volumes on this cluster"

// volumesRule returns a CEL expression that rejects CSI and ephemeral volumes, such as csi-rclone
// volumes. spec is the CEL path of a spec, and field is the name of its volume list.
func volumesRule(spec, field string) string {
	return fmt.Sprintf("!has(%[1]s.%[2]s) || %[1]s.%[2]s.all(v, !has(v.ephemeral) && !has(v.csi))", spec, field)
}

// policyPrefix includes the namespace, because admission policies are cluster-wide.
func policyPrefix(e steps.Env) string { return sessionsNamespace(e) + "-" + identityName(e) }

// policySuffixes lists the suffixes of the policies' names. Each policy's binding has the same name
// as the policy.
var policySuffixes = []string{"tokens", "sessions", "workloads"}

func limitsAccounts(e steps.Env) bool { return e.Answers.Bool("identity.policies") }

func policiesQuestion() steps.Question {
	return steps.Question{
		Key: "identity.policies", Title: "Admission policies that deny the use of other accounts",
		Kind: steps.YesNo, On: steps.Remote,
		Help: "If yes, carrick creates ValidatingAdmissionPolicies (Kubernetes 1.30 or later). Without them, anyone with " +
			"Renku's kubeconfig can act as any ServiceAccount in the session namespace.",
		Default: func(e steps.Env) (any, string) {
			switch served, err := e.Own.Value("serves-policies"); {
			case err != nil:
				return false, "the default, because carrick cannot check whether the cluster serves ValidatingAdmissionPolicies"
			case served == true:
				return true, "the cluster, which serves ValidatingAdmissionPolicies"
			}
			return false, "the cluster, which does not serve ValidatingAdmissionPolicies"
		},
	}
}

// sessionAccounts returns the ServiceAccounts that sessions are allowed to use. An empty name means
// the namespace's default ServiceAccount.
func sessionAccounts(e steps.Env) []string {
	out := []string{"", "default"}
	if name := e.Answers.Text("sessions.service-account"); name != "" && name != "default" {
		out = append(out, name)
	}
	return out
}

func policiesFix(ctx context.Context, e steps.Env) string {
	if limitsAccounts(e) && onlyWarns(ctx, e) {
		return e.ApplyStep("identity") + " --replace"
	}
	if limitsAccounts(e) {
		return e.ApplyStep("identity")
	}
	if served, err := e.Own.Value("serves-policies"); err == nil && served == true {
		return "set identity.policies to yes, then " + e.ApplyStep("identity")
	}
	return "upgrade the cluster to Kubernetes 1.30 or later, which serves ValidatingAdmissionPolicies. Then " +
		e.ApplyStep("identity")
}

// onlyWarns reports whether another user or tool has added Warn to the validationActions of a
// binding. Such a binding must be recreated. Server-side apply would add Deny, but API servers
// reject Deny together with Warn (kubernetes/kubernetes:
// pkg/apis/admissionregistration/validation/validation.go).
func onlyWarns(ctx context.Context, e steps.Env) bool {
	for _, of := range policySuffixes {
		o, err := e.Cluster.Get(ctx, check.ValidatingBindings, "", policyPrefix(e)+"-"+of)
		if err != nil {
			continue
		}
		actions, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "validationActions")
		if slices.Contains(actions, "Warn") {
			return true
		}
	}
	return false
}
