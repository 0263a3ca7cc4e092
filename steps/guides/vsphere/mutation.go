package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// byKyverno is the method with a Kyverno policy, which carrick exports and an admin applies.
const byKyverno = "kyverno"

// policyName is the name of carrick's MutatingAdmissionPolicy, of its binding, and of the exported
// ClusterPolicy.
const policyName = "rwx-storage-class"

func mutation() steps.Step {
	return steps.Step{
		Name: "mutation", Title: "StorageClass of claims",
		Map: steps.MapRow{Local: "StorageClass policy"},
		Why: "Kale and pipelines create ReadWriteMany claims without a StorageClass, and the Supervisor resets the default " +
			"StorageClass, which does not support ReadWriteMany. So an admission policy or, where the cluster serves no such " +
			"policies, the extension's webhook sets the StorageClass of new claims. If possible, set the StorageClass at the " +
			"source instead.",
		Ask: []steps.Question{
			{
				Key: "mutation.method", Title: "Method that sets the StorageClass of claims", Kind: steps.Pick, Default: defaultBy,
				Adopt: adoptBy,
				Help: "Use the first method that the cluster serves: unlike a webhook, a policy does not depend on a pod. Use " +
					"only one method.",
				Of: []steps.Choice{
					{Value: byPolicy, Title: "policy: Kubernetes' built-in MutatingAdmissionPolicy (1.36)"},
					{Value: byWebhook, Title: "webhook: the extension, as in the published guide"},
					{Value: byKyverno, Title: "kyverno: a ClusterPolicy that carrick exports and you apply"},
					{Value: byNobody, Title: "none: for native volumes, or if claims already name the StorageClass"},
				},
			},
			{
				Key: "mutation.selector", Title: "Label of the namespaces to select", Kind: steps.Label,
				When: exchanges, Adopt: adoptSelector,
				Help: "KEY=VALUE. Kubeflow's profile controller sets the default label on profile namespaces. Without a " +
					"selector, as in the published guide, every claim in the cluster would depend on the policy or webhook.",
				Default: steps.Fixed(profileLabel+"="+profileValue, "Kubeflow's profile labels"),
			},
			{
				Key: "mutation.replaces", Title: "Replaced StorageClasses", Kind: steps.Name, Many: true, Opt: true,
				When:  exchanges,
				Adopt: adoptFrom,
				Help: "StorageClasses that are replaced in ReadWriteMany claims. Claims with another StorageClass, or with " +
					"\"\" for an existing volume, are not changed. Include the default StorageClass, because a claim without a " +
					"StorageClass gets the default before the policy or webhook is called.",
				Default: defaultFrom,
			},
			{
				Key: "mutation.failure-policy", Title: "Failure policy for claims", Kind: steps.Pick, When: exchanges,
				Default: defaultFail, Adopt: adoptFail,
				Help: "Ignore: the claim is created with the StorageClass that it requests, and silently stays Pending. Fail: " +
					"the claim is rejected, so its creator notices. With Fail, a webhook without a ready pod rejects all claims in " +
					"these namespaces.",
				Of: []steps.Choice{
					{Value: failClosed, Title: "Fail: the claim is rejected"},
					{Value: failOpen, Title: "Ignore: the claim keeps its StorageClass"},
				},
			},
		},
		Actions: []steps.Action{
			{
				Name: "policy", Title: "Create a policy that sets the StorageClass of claims", On: steps.Local, When: usesPolicy,
				Needs: []string{"signed-in"},
				Doer: policyDoer{action.Manifest{File: "policy.yaml", Version: servedPolicies, Values: action.Values{
					"exchanged": func(_ context.Context, e steps.Env) (any, error) { return exchanged(e), nil },
					"assign":    func(_ context.Context, e steps.Env) (any, error) { return assigned(e), nil },
					"label-key": labelKey, "label-value": labelValue,
				}}},
			},
			{
				Name: "kyverno-file", Title: "Export a policy for Kyverno", On: steps.Local, When: usesKyverno,
				Doer: kyvernoFile(),
			},
		},
		Checks: mutationChecks(),
	}
}

// Values of mutation.failure-policy.
const (
	failClosed = "Fail"
	failOpen   = "Ignore"
)

func usesKyverno(e steps.Env) bool { return e.Answers.Text("mutation.method") == byKyverno }

// exchanges reports whether carrick or a Kyverno policy sets the StorageClass of claims.
func exchanges(e steps.Env) bool { return e.Answers.Text("mutation.method") != byNobody }

func defaultBy(e steps.Env) (any, string) {
	if e.Answers.Text("storage.source") == native {
		return byNobody, "default; the guest's own volumes support ReadWriteMany"
	}
	if usuallyShared(e) {
		return byNobody, "default; " + sharedClassName(e) + " is already the default StorageClass"
	}
	if version, err := e.Own.Text("serves-map"); err == nil {
		return byPolicy, "default; the cluster serves MutatingAdmissionPolicies in " + version
	}
	return byWebhook, "default; the cluster serves no MutatingAdmissionPolicies"
}

// usuallyShared reports whether the guest's default StorageClass is the shared StorageClass.
func usuallyShared(e steps.Env) bool {
	usual, err := e.Own.Text("default-class")
	return err == nil && usual == sharedClassName(e)
}

func defaultFrom(e steps.Env) (any, string) {
	name, err := e.Own.Text("default-class")
	if err != nil {
		return nil, ""
	}
	return []string{name}, "the guest's default StorageClass"
}

func defaultFail(e steps.Env) (any, string) {
	if usesWebhook(e) {
		return failOpen, "the published guide"
	}
	return failClosed, "default; a policy runs in the API server itself"
}

// namespaceSelector returns the label of the namespaces whose claims are changed.
func namespaceSelector(e steps.Env) (key, value string) {
	key, value, _ = strings.Cut(e.Answers.Text("mutation.selector"), "=")
	return key, value
}

// labelKey returns the manifest value with the key of the label in mutation.selector. The value is nil if
// mutation.method is none.
func labelKey(_ context.Context, e steps.Env) (any, error) {
	if key, _ := namespaceSelector(e); exchanges(e) {
		return key, nil
	}
	return nil, nil
}

func labelValue(_ context.Context, e steps.Env) (any, error) {
	_, value := namespaceSelector(e)
	return value, nil
}

// sharedClaim is a CEL condition. It is true if the claim requests ReadWriteMany.
const sharedClaim = "has(object.spec.accessModes) && 'ReadWriteMany' in object.spec.accessModes"

// unnamedVolume is a CEL condition. It is true if the claim does not request a volume by name. A claim with a volume
// name is bound to that volume and must keep the volume's StorageClass.
const unnamedVolume = "!has(object.spec.volumeName) || object.spec.volumeName == ''"

// exchanged returns a CEL condition. It is true if the claim has no StorageClass, or a StorageClass in
// mutation.replaces.
func exchanged(e steps.Env) string {
	out := "!has(object.spec.storageClassName)"
	if from := e.Answers.List("mutation.replaces"); len(from) > 0 {
		var quoted []string
		for _, name := range from {
			quoted = append(quoted, celText(name))
		}
		out += " || object.spec.storageClassName in [" + strings.Join(quoted, ", ") + "]"
	}
	return out
}

// assigned returns the CEL expression that sets the claim's new StorageClass.
func assigned(e steps.Env) string {
	return "Object{spec: Object.spec{storageClassName: " + celText(sharedClassName(e)) + "}}"
}

// celText quotes s as a CEL string literal (google/cel-spec: doc/langdef.md, string literals). The content of s cannot
// end the literal.
func celText(s string) string { return strconv.QuoteToASCII(s) }

// servedPolicies returns the API version in which the cluster serves MutatingAdmissionPolicies.
func servedPolicies(_ context.Context, e steps.Env) (string, error) {
	return e.Own.Text("serves-map")
}

// policyKinds returns the resources of MutatingAdmissionPolicies and their bindings, in the served
// version.
func policyKinds(e steps.Env) (policies, bindings schema.GroupVersionResource, err error) {
	version, err := e.Own.Text("serves-map")
	gv := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: version}
	return gv.WithResource("mutatingadmissionpolicies"), gv.WithResource("mutatingadmissionpolicybindings"), err
}

func mutationPermissions(e steps.Env) []permission.Rule {
	out := slices.Concat(
		check.ToFollow("", check.MutatingWebhooks), check.ToFollow("", kyvernoKinds...),
		check.ToFollow(kubeflowSpace, check.ConfigMaps),
	)
	policies, bindings, err := policyKinds(e)
	switch {
	case err != nil: // MutatingAdmissionPolicies are not served
	case usesPolicy(e):
		out = append(out, check.ToApply("", policies, bindings)...)
	default:
		out = append(out, check.ToFollow("", policies, bindings)...)
	}
	return out
}

// kyvernoFile returns an action that exports a policy for Kyverno. carrick does not apply the
// policy.
func kyvernoFile() action.Call {
	return action.Call{
		Preview: func(_ context.Context, e steps.Env) (steps.Change, error) {
			return steps.Change{Items: []steps.Item{{
				Verb: steps.Leave, What: "ClusterPolicy " + policyName,
				Note: "carrick does not apply the policy. Export it: carrick export " + e.LinkFile() + " DIR; then " + e.Kubectl() +
					" apply -f",
			}}}, nil
		},
		Make:   func(context.Context, steps.Env, steps.Progress) error { return nil },
		Left:   func(context.Context, steps.Env) (steps.Change, error) { return steps.Change{}, nil },
		Revert: func(context.Context, steps.Env, steps.Progress) error { return nil },
		Exports: func(_ context.Context, e steps.Env) ([]action.Exported, error) {
			return []action.Exported{
				{Object: kyvernoPolicy(e)},
				{
					Note: fmt.Sprintf(
						"ClusterPolicy %s requires Kyverno. The policy sets StorageClass %s on ReadWriteMany claims", policyName,
						sharedClassName(e),
					),
				},
			}, nil
		},
	}
}
