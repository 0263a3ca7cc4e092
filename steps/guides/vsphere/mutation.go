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

// byKyverno means a Kyverno policy that carrick exports and the Kyverno admin applies.
const byKyverno = "kyverno"

// policyName is the name of carrick's policy, of any kind, and of its binding.
const policyName = "rwx-storage-class"

func mutation() steps.Step {
	return steps.Step{
		Name: "mutation", Title: "Claims' class",
		Why: "Kale and pipelines make claims that many pods write to without a class, and get the default one, which can't " +
			"do that; the default can't be changed, because the Supervisor sets it back. So the class is exchanged when a " +
			"claim is made: by an admission policy where the cluster serves them, which takes no pod and no certificate, else " +
			"by the published guide's webhook, made anew. Best is what names the class at the source, where that can be.",
		Ask: []steps.Question{
			{
				Key: "mutation.by", Title: "Who exchanges the class of claims", Kind: steps.Pick, Default: defaultBy,
				Adopt: adoptBy,
				Help: "The first that the cluster serves is the best: a policy fails for no pod's sake. Two that do it at once " +
					"are one too many.",
				Of: []steps.Choice{
					{Value: byPolicy, Title: "policy: a MutatingAdmissionPolicy of Kubernetes' own (1.36)"},
					{Value: byWebhook, Title: "webhook: the extension of the published guide, made anew"},
					{Value: byKyverno, Title: "kyverno: a ClusterPolicy that carrick writes out and you apply"},
					{Value: byNobody, Title: "none: native volumes, or whoever makes claims names the class"},
				},
			},
			{
				Key: "mutation.selector", Title: "Label of the namespaces whose claims are looked at", Kind: steps.Label,
				When: exchanges, Adopt: adoptSelector,
				Help: "Kubeflow's profile controller puts the default one onto the namespaces of profiles. Without a selector " +
					"every claim of the cluster would hang on it, as in the published guide.",
				Default: steps.Fixed(profileLabel+"="+profileValue, "the labels of Kubeflow's profiles"),
			},
			{
				Key: "mutation.from", Title: "Classes that are exchanged", Kind: steps.Name, Many: true, Opt: true, When: exchanges,
				Adopt: adoptFrom,
				Help: "Of claims that many pods write to. A claim with another class, or with \"\", which asks for a volume " +
					"that somebody has made, keeps it. A claim without a class gets the default one before anybody is asked, " +
					"so name that.",
				Default: defaultFrom,
			},
			{
				Key: "mutation.fail", Title: "What becomes of claims when the exchange fails", Kind: steps.Pick, When: exchanges,
				Default: defaultFail, Adopt: adoptFail,
				Help: "Ignore: the claim is made with the class that it asked for and stays Pending, without a word. Fail: it is " +
					"refused, which whoever makes it sees at once; a webhook without a ready pod then refuses all of them in these " +
					"namespaces.",
				Of: []steps.Choice{
					{Value: failClosed, Title: "Fail: the claim is refused"},
					{Value: failOpen, Title: "Ignore: the claim keeps its class"},
				},
			},
		},
		Actions: []steps.Action{
			{
				Name: "policy", Title: "Exchange the class of claims by a policy", On: steps.Local, When: usesPolicy,
				Needs: []string{"signed-in"},
				Doer: policyDoer{action.Manifest{File: "policy.yaml", Version: servedPolicies, Values: action.Values{
					"exchanged": func(_ context.Context, e steps.Env) (any, error) { return exchanged(e), nil },
					"assign":    func(_ context.Context, e steps.Env) (any, error) { return assigned(e), nil },
					"label-key": labelKey, "label-value": labelValue,
				}}},
			},
			{
				Name: "kyverno-file", Title: "Write out a policy for Kyverno", On: steps.Local, When: usesKyverno,
				Doer: kyvernoFile(),
			},
		},
		Checks: mutationChecks(),
	}
}

// These are the failure policies.
const (
	failClosed = "Fail"
	failOpen   = "Ignore"
)

func usesKyverno(e steps.Env) bool { return e.Answers.Text("mutation.by") == byKyverno }

// exchanges reports whether classes are replaced at all.
func exchanges(e steps.Env) bool { return e.Answers.Text("mutation.by") != byNobody }

func defaultBy(e steps.Env) (any, string) {
	if e.Answers.Text("storage.source") == native {
		return byNobody, "the guest's own volumes are shared ones"
	}
	if usuallyShared(e) {
		return byNobody, sharedClassName(e) + " is the default class: claims without a class have it already"
	}
	if version, err := e.Own.Text("serves-map"); err == nil {
		return byPolicy, "the cluster serves MutatingAdmissionPolicies in " + version
	}
	return byWebhook, "the cluster serves no MutatingAdmissionPolicies"
}

// usuallyShared reports whether the default class is the one for shared volumes.
func usuallyShared(e steps.Env) bool {
	usual, err := e.Own.Text("default-class")
	return err == nil && usual == sharedClassName(e)
}

func defaultFrom(e steps.Env) (any, string) {
	name, err := e.Own.Text("default-class")
	if err != nil {
		return nil, ""
	}
	return []string{name}, "the guest's default class"
}

func defaultFail(e steps.Env) (any, string) {
	if usesWebhook(e) {
		return failOpen, "the published guide"
	}
	return failClosed, "a policy runs in the API server itself"
}

// namespaceSelector returns the label of the namespaces whose claims are reviewed.
func namespaceSelector(e steps.Env) (key, value string) {
	key, value, _ = strings.Cut(e.Answers.Text("mutation.selector"), "=")
	return key, value
}

// labelKey and labelValue return that label for a manifest, or nil if no classes are replaced.
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

// sharedClaim is a CEL condition: many pods will write to the claim.
const sharedClaim = "has(object.spec.accessModes) && 'ReadWriteMany' in object.spec.accessModes"

// unnamedVolume is a CEL condition: the claim does not request a volume by name. A claim that
// does is bound to that volume, which has the class that the claim requests.
const unnamedVolume = "!has(object.spec.volumeName) || object.spec.volumeName == ''"

// exchanged is a CEL condition: the claim has a class that is replaced.
func exchanged(e steps.Env) string {
	out := "!has(object.spec.storageClassName)"
	if from := e.Answers.List("mutation.from"); len(from) > 0 {
		var quoted []string
		for _, name := range from {
			quoted = append(quoted, celText(name))
		}
		out += " || object.spec.storageClassName in [" + strings.Join(quoted, ", ") + "]"
	}
	return out
}

// assigned is a CEL expression: the claim with its new class.
func assigned(e steps.Env) string {
	return "Object{spec: Object.spec{storageClassName: " + celText(sharedClassName(e)) + "}}"
}

// celText quotes a string for CEL (google/cel-spec: doc/langdef.md, string literals), so that
// its content cannot end the literal.
func celText(s string) string { return strconv.QuoteToASCII(s) }

// servedPolicies returns the version in which policies are served.
func servedPolicies(_ context.Context, e steps.Env) (string, error) {
	return e.Own.Text("serves-map")
}

// policyKinds returns the resources of policies and their bindings, in the served version.
func policyKinds(e steps.Env) (policies, bindings schema.GroupVersionResource, err error) {
	version, err := e.Own.Text("serves-map")
	gv := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: version}
	return gv.WithResource("mutatingadmissionpolicies"), gv.WithResource("mutatingadmissionpolicybindings"), err
}

// mutationPermissions are the permissions that this step requires.
func mutationPermissions(e steps.Env) []permission.Rule {
	out := slices.Concat(
		check.ToFollow("", check.MutatingWebhooks), check.ToFollow("", kyvernoKinds...),
		check.ToFollow(kubeflowSpace, check.ConfigMaps),
	)
	policies, bindings, err := policyKinds(e)
	switch {
	case err != nil: // they are not served
	case usesPolicy(e):
		out = append(out, check.ToApply("", policies, bindings)...)
	default:
		out = append(out, check.ToFollow("", policies, bindings)...)
	}
	return out
}

// kyvernoFile exports a policy for the Kyverno admin. carrick does not apply it.
func kyvernoFile() action.Call {
	return action.Call{
		Preview: func(_ context.Context, e steps.Env) (steps.Change, error) {
			return steps.Change{Items: []steps.Item{{
				Verb: steps.Leave, What: "ClusterPolicy " + policyName,
				Note: "carrick does not apply it: carrick export " + e.LinkFile() + " DIR writes it; then " + e.Kubectl() +
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
						"ClusterPolicy %s takes Kyverno: it gives claims that many pods write to the class %s", policyName,
						sharedClassName(e),
					),
				},
			}, nil
		},
	}
}
