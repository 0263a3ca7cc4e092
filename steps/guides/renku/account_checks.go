package renku

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// accountChecks returns checks that verify that the new kubeconfig cannot act as another
// ServiceAccount. These checks send test objects only as dry runs, so they create nothing.
func accountChecks() []steps.Check {
	const risks = "https://kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks"
	return []steps.Check{
		{
			Name: "token-secrets-denied", Title: "The kubeconfig cannot create tokens for other accounts",
			On: steps.Remote, From: withItself,
			Needs: []string{"credential-accepted"}, FixedBy: "account-policies",
			Why: "With a Secret of type kubernetes.io/service-account-token, anyone with the kubeconfig gets the token of any " +
				"account in the namespace.",
			References: []string{risks},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return limited(ctx, e, tokenTrial(e), "a token Secret for any ServiceAccount", "token Secrets")
			},
		},
		{
			Name: "session-account-fixed", Title: "The kubeconfig cannot run sessions as other accounts",
			On: steps.Remote, From: withItself,
			Needs: []string{"credential-accepted"}, FixedBy: "account-policies",
			Why: "A session's pod has the token of its ServiceAccount, so a session that runs as the operator's account has " +
				"the operator's permissions.",
			References: []string{
				"SwissDataScienceCenter/amalthea: config/crd/bases/amalthea.dev_amaltheasessions.yaml (spec.serviceAccountName)",
				risks,
			},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return limited(ctx, e, sessionTrial(e),
					"sessions that run as any ServiceAccount", "sessions that run as another ServiceAccount")
			},
		},
		{
			Name: "data-connectors-denied", Title: "The kubeconfig cannot run sessions with data connectors",
			On: steps.Remote, From: withItself,
			When:  func(e steps.Env) bool { return !mountsConnectors(e) },
			Needs: []string{"credential-accepted"}, FixedBy: "account-policies",
			Why: "csi-rclone runs privileged and the kubeconfig can write its configuration, so a session could mount the " +
				"volumes of other pods.",
			References: []string{
				"SwissDataScienceCenter/csi-rclone: pkg/rclone/nodeserver.go (extractConfigData)",
				"SwissDataScienceCenter/amalthea: api/v1alpha1/amaltheasession_types.go (DataSource)",
			},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return limited(ctx, e, connectorTrial(e), "sessions with data connectors", "sessions with data connectors")
			},
		},
		{
			Name: "accounts-least-privilege", Title: "The kubeconfig cannot act as a more privileged account",
			On: steps.Remote, Needs: []string{"credential-accepted"},
			Why: "Anyone with the kubeconfig gains the permissions of every account that it can act as, including the " +
				"accounts of the sessions.",
			References: []string{
				risks,
				"SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/api.spec.yaml " +
					"(service_account_name)",
			},
			Run: accountsWithin,
		},
	}
}

// trialAge and trialSteady limit how long the result of a dry run is cached (see
// cluster.PreviewOptions). Both are short, because API servers enforce a new policy only after a
// few seconds.
const (
	trialAge    = 3 * time.Second
	trialSteady = 15 * time.Second
)

// unrelatedRejection is returned if the API server rejects a test object for a reason unrelated to
// ServiceAccounts, such as a quota.
type unrelatedRejection struct{ why string }

func (e *unrelatedRejection) Error() string {
	return "unknown, because the API server rejects the test object for an unrelated reason: " + e.why
}

// denialTrial contains two test objects that differ in one field. The API server must reject the
// harmful object because of this field. The field create is the permission to create these objects.
type denialTrial struct {
	harmless, harmful *unstructured.Unstructured
	create            permission.Rule
}

func tokenTrial(e steps.Env) denialTrial {
	secret := func(kind string) *unstructured.Unstructured {
		o := trialObject("v1", "Secret", sessionsNamespace(e))
		o.Object["type"] = kind
		o.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": "default"})
		return o
	}
	return denialTrial{
		secret("Opaque"), secret("kubernetes.io/service-account-token"),
		permission.Rule{Verb: "create", Resource: "secrets", Namespace: sessionsNamespace(e)},
	}
}

func sessionTrial(e steps.Env) denialTrial {
	return sessions(e, func(spec map[string]any) { spec["serviceAccountName"] = "carrick-preview" })
}

func connectorTrial(e steps.Env) denialTrial {
	return sessions(e, func(spec map[string]any) {
		spec["dataSources"] = []any{map[string]any{"type": "rclone", "mountPath": "data"}}
	})
}

// sessions returns a trial with two sessions. The harmless session is one that Renku could create.
// The harmful session is the same, except that harm has modified its spec.
func sessions(e steps.Env, harm func(spec map[string]any)) denialTrial {
	session := func() (o *unstructured.Unstructured, spec map[string]any) {
		o = trialObject(sessionsKind.GroupVersion().String(), "AmaltheaSession", sessionsNamespace(e))
		spec = map[string]any{"hibernated": true, "session": map[string]any{"image": sessionImage}}
		if account := e.Answers.Text("sessions.service-account"); account != "" {
			spec["serviceAccountName"] = account
		}
		o.Object["spec"] = spec
		return o, spec
	}
	harmless, _ := session()
	harmful, spec := session()
	harm(spec)
	return denialTrial{
		harmless, harmful,
		permission.Rule{
			Verb: "create", Group: sessionsKind.Group, Resource: sessionsKind.Resource, Namespace: sessionsNamespace(e),
		},
	}
}

// trialName is the name of the test objects. It contains a random suffix. With a fixed name, anyone
// with Renku's kubeconfig could create the object in advance, and the dry run would test an update
// instead of a creation.
var trialName = "carrick-preview-" + rand.String(8)

func trialObject(version, kind, namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	o.SetNamespace(namespace)
	o.SetName(trialName)
	o.SetLabels(map[string]string{"app.kubernetes.io/name": "carrick"})
	return o
}

// denied sends both objects as dry runs with Renku's kubeconfig. It reports whether the API server
// accepts the harmless object and rejects the harmful object, and why it rejects the harmful
// object. denied returns an *unrelatedRejection if the API server rejects an object for an
// unrelated reason.
func (t denialTrial) denied(ctx context.Context, e steps.Env) (why string, is bool, err error) {
	as, err := withKubeconfig(e)
	if err != nil {
		return "", false, err
	}
	try := func(o *unstructured.Unstructured) error {
		_, err := as.Preview(ctx, o, cluster.PreviewOptions{Age: trialAge, Steady: trialSteady})
		return err
	}
	var harmless, harmful error
	if err := check.Together(
		func() error { harmless = try(t.harmless); return nil },
		func() error { harmful = try(t.harmful); return nil },
	); err != nil {
		return "", false, err
	}
	if why, refused := check.Refusal(harmless); refused {
		return "", false, &unrelatedRejection{why}
	}
	if apierrors.IsForbidden(harmless) { // perhaps only because an apply also requires the patch permission
		may, err := as.Can(ctx, t.create)
		if err == nil && !may[0].Allowed {
			return "it does not have the create permission", true, nil
		}
	}
	if harmless != nil {
		return "", false, harmless
	}
	if why, refused := check.Refusal(harmful); refused {
		if !refusedByPolicy(why) {
			return "", false, &unrelatedRejection{why}
		}
		return why, true, nil
	}
	for _, field := range []string{"serviceAccountName", "dataSources"} {
		if apierrors.IsBadRequest(harmful) && strings.Contains(harmful.Error(), `unknown field "spec.`+field+`"`) {
			return "the AmaltheaSession CRD has no field " + field, true, nil
		}
	}
	return "", false, harmful
}

// refusedByPolicy reports whether an admission policy or a webhook rejected the request. A
// rejection by a quota does not count, because Renku's kubeconfig can change quotas.
func refusedByPolicy(why string) bool {
	return strings.HasPrefix(why, "ValidatingAdmissionPolicy '") || strings.HasPrefix(why, "admission webhook ")
}

func limited(ctx context.Context, e steps.Env, t denialTrial, all, none string) steps.Result {
	why, is, err := t.denied(ctx, e)
	switch way := (*unrelatedRejection)(nil); {
	case errors.As(err, &way):
		return inconclusive(e, way)
	case errors.Is(err, failure.ErrNotServed):
		return steps.Skipped("the cluster does not serve %s yet", strings.ToLower(t.harmful.GetKind())+"s")
	case err != nil:
		return steps.Errored(err)
	case !is && inForceSoon(ctx, e):
		return steps.Waits(
			time.Time{}, "the kubeconfig can still create %s: new admission policies take effect after a few seconds",
			all,
		).Or(policiesFix(ctx, e))
	case !is:
		return steps.Warned("the kubeconfig can create "+all, policiesFix(ctx, e))
	}
	return steps.Passed("the kubeconfig cannot create %s: %s", none, why)
}

func inconclusive(e steps.Env, way *unrelatedRejection) steps.Result {
	return steps.Result{
		Status: steps.Unknown, Found: way.Error(), Err: way,
		Fix: check.RefusedFix(e.Kubectl(), steps.Quoted(sessionsNamespace(e)), way.why),
	}
}

// soon is how long API servers can take to enforce a new policy.
const soon = 30 * time.Second

// inForceSoon reports whether the link's policies are so new that some API servers might not
// enforce them yet.
func inForceSoon(ctx context.Context, e steps.Env) bool {
	if !limitsAccounts(e) {
		return false
	}
	for _, of := range policySuffixes {
		for _, kind := range []schema.GroupVersionResource{check.ValidatingPolicies, check.ValidatingBindings} {
			p, err := e.Cluster.Get(ctx, kind, "", policyPrefix(e)+"-"+of)
			if err == nil && time.Since(p.GetCreationTimestamp().Time) < soon {
				return true
			}
		}
	}
	return false
}

func accountsWithin(ctx context.Context, e steps.Env) steps.Result {
	ns := sessionsNamespace(e)
	e.Cluster.StartList("", check.RoleBindings, check.ClusterRoleBindings)
	e.Cluster.StartList(ns, check.Secrets)
	every := false
	way := (*unrelatedRejection)(nil) // set if a trial is inconclusive
	for _, t := range []denialTrial{tokenTrial(e), sessionTrial(e)} {
		_, is, err := t.denied(ctx, e)
		switch {
		case errors.Is(err, failure.ErrNotServed): // without the API no such object can be created
			continue
		case errors.As(err, &way):
			continue
		case err != nil:
			return steps.Errored(err)
		}
		every = every || !is
	}
	var grants []check.Grant
	var old map[string]string
	if err := check.Together(
		func() (err error) {
			grants, err = check.Grants(ctx, e.Cluster, ns)
			return err
		},
		func() (err error) {
			old, err = oldTokens(ctx, e)
			return err
		},
	); err != nil {
		return steps.Errored(err)
	}
	others := 0
	grants = slices.DeleteFunc(grants, func(g check.Grant) bool {
		if g.Account == identityName(e) || check.PullsOnly(ctx, e.Cluster, g) { // other checks cover these permissions
			return true
		}
		others++
		return !every && g.Account != "" && old[g.Account] == "" && !slices.Contains(sessionAccounts(e), g.Account)
	})
	if len(grants) == 0 && others > 0 && way != nil {
		return inconclusive(e, way)
	}
	if len(grants) == 0 {
		if every {
			return steps.Passed("no other ServiceAccount in %s is bound to a role", ns)
		}
		return steps.Passed("no ServiceAccount that sessions use is bound to a role")
	}
	var words []string
	for _, g := range grants {
		words = append(words, g.String())
	}
	first := grants[max(0, slices.IndexFunc(grants, func(g check.Grant) bool { return !g.Bootstrap() }))]
	fix := first.Without(e.Kubectl())
	if len(inventory.OtherLinks(first.Labels, "")) > 0 {
		fix = first.Show(e.Kubectl()) + "    # remove the ServiceAccount from the binding's subjects"
	}
	if secret := old[first.Account]; secret != "" {
		fix = e.Kubectl() + " -n " + ns + " delete secret " + secret +
			"    # the kubeconfig can read this token. Keep the Secret only if something else uses it"
	} else if every {
		if fix = policiesFix(ctx, e); inForceSoon(ctx, e) {
			return steps.Waits(time.Time{}, "new admission policies take effect after a few seconds").Or(fix)
		}
	}
	return steps.Warned(fmt.Sprintf("anyone with Renku's kubeconfig can act as %s", strings.Join(words, "; ")), fix)
}

// oldTokens maps each ServiceAccount to the name of its token Secret in the session namespace.
// Renku's kubeconfig can read all Secrets in this namespace, regardless of who created them.
func oldTokens(ctx context.Context, e steps.Env) (map[string]string, error) {
	all, err := e.Cluster.Secrets(ctx, sessionsNamespace(e), cluster.Selector{})
	out := map[string]string{}
	for _, s := range all {
		if s.Type == string(corev1.SecretTypeServiceAccountToken) {
			out[s.Annotations[corev1.ServiceAccountNameKey]] = s.Name
		}
	}
	return out, err
}
