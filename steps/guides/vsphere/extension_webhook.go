package vsphere

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/certs"
	"carrick/steps/check"
)

const (
	webhookSource = page + " (additional/webhook.yaml)"
	// sampleCA is the SHA-256 of the CA in that file, which belongs to the guide author's cluster
	// of 2020.
	sampleCA = "f07215147b3d1fc01e1ae8363f1e7b60f10c3a716d4087c473a2060ed4826597"
)

func webhookChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "cert-bundle", Title: "the webhook's CA proves the extension's certificate", On: steps.Local,
			Needs: []string{"signed-in"}, When: usesWebhook, FixedBy: "webhook",
			Why: "the published file carries the CA of its author's cluster, and the guide puts the cluster's own CA " +
				"in its place, which has signed the certificate no more since Kubernetes 1.22: every call fails, and is " +
				"passed over",
			References: []string{webhookSource, signerSource}, Run: certBundle,
		},
		{
			Name: "webhook-rules", Title: "the API server asks it about new claims of profiles, and nothing else",
			On: steps.Local, Needs: []string{"signed-in"}, When: usesWebhook, FixedBy: "webhook",
			Why: "without a selector every claim of the cluster waits for the extension, those that it needs " +
				"itself among them",
			References: []string{
				webhookSource, "https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/",
			}, Run: webhookRules,
		},
		{
			Name: "extension-config", Title: "the extension gives claims the class that was answered", On: steps.Local,
			Needs: []string{"signed-in"}, When: usesWebhook, FixedBy: "extension",
			Why: "the published program reads its class once, at its start; without its ConfigMap it gives claims the class " +
				"\"to-be-overridden\", with the quotes", References: []string{
				resourcesSource, page + " (src/main/resources/application.properties)",
			}, Run: extensionConfig,
		},
		{
			Name: "page-sed", Title: "the published guide's file and ConfigMap name the class that was answered",
			On: steps.Local, Needs: []string{"signed-in"}, When: usesWebhook,
			Why: "its sed -i \"s/nfs-client/CLASS/\" works once: with another class the second time there is no nfs-client in " +
				"the file any more, and nothing is changed, without a word", References: []string{resourcesSource}, Run: pageSed,
		},
		{
			Name: "webhook-failures", Title: "no call of the webhook has failed", On: steps.Local, Needs: []string{"signed-in"},
			When: usesWebhook,
			Why: "what failed under failurePolicy Ignore stands nowhere but in a counter of the API server: claims that were " +
				"misplaced then are Pending still", References: []string{
				"https://kubernetes.io/docs/reference/instrumentation/metrics/ (apiserver_admission_webhook_fail_open_count)",
			}, Run: webhookFailures,
		},
	}
}

// extensionWebhook returns the webhook configuration that calls the extension, or an
// AbsentError if there is none.
func extensionWebhook(ctx context.Context, e steps.Env) (*admissionv1.MutatingWebhookConfiguration, error) {
	c, err := check.Get[admissionv1.MutatingWebhookConfiguration](ctx, e.Cluster, check.MutatingWebhooks, "", webhookName)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("there is no MutatingWebhookConfiguration %s", webhookName)
	}
	return c, err
}

func certBundle(ctx context.Context, e steps.Env) steps.Result {
	c, err := extensionWebhook(ctx, e)
	if err != nil {
		return check.AbsentFails(err, "")
	}
	s, unread := extensionCertificate(ctx, e) // the bundle itself can be judged without it
	for _, w := range c.Webhooks {
		called, bundle := "webhook "+clean.Text(w.Name), w.ClientConfig.CABundle
		if len(bundle) == 0 {
			return steps.Failed(called+" carries no CA: the API server trusts nobody to be the extension", remade(e))
		}
		roots, err := probe.ParseCerts(bundle)
		if err != nil {
			return steps.Failed("the CA of "+called+": "+err.Error(), remade(e))
		}
		sum := sha256.Sum256(roots[0].Raw)
		if hex.EncodeToString(sum[:]) == sampleCA {
			return steps.Failed(called+" carries the CA of the published file: that of its author's cluster, of 2020", remade(e))
		}
		if unread != nil {
			return steps.Errored(unread)
		}
		if own := check.TLSSecret(s, host(e), 0, time.Now(), ""); own.Status == steps.Fail {
			return steps.Skipped("the certificate itself is wrong, whatever CA is in the webhook: %s", own.Found)
		}
		r := proves(s, roots, "the CA of "+called, host(e), remade(e))
		if own, err := probe.ParseCerts(e.Cluster.CA()); err == nil && r.Status == steps.Fail && roots[0].Equal(own[0]) {
			r.Found += "; it is the cluster's own CA, which the published guide takes out of a pod, and another one has " +
				"signed the certificate"
		}
		if r.Status != steps.Pass {
			return r
		}
		if r := endsHere(s, roots[0], called, e.ApplyStep("extension")); r.Status != steps.Pass {
			return r
		}
	}
	return steps.Passed("%s", c.Name)
}

// endsHere verifies that the CA in a webhook remains valid, if it differs from the one next to
// the certificate, which another check judges.
func endsHere(s *cluster.Secret, root *x509.Certificate, called, fix string) steps.Result {
	if beside, err := probe.ParseCerts([]byte(s.Data["ca.crt"].Reveal())); err == nil && root.Equal(beside[0]) {
		return steps.Passed("it is the one beside the certificate")
	}
	r := check.Lasts(root, certs.Soon(root), time.Now(), fix)
	r.Found = "of the CA of " + called + ", which is another than the one that signs now, " + r.Found
	return r
}

func webhookRules(ctx context.Context, e steps.Env) steps.Result {
	c, err := extensionWebhook(ctx, e)
	if err != nil {
		return check.AbsentFails(err, "")
	}
	var names []string
	for _, w := range c.Webhooks {
		names = append(names, clean.Text(w.Name))
	}
	if len(c.Webhooks) != 1 {
		return steps.Failed(
			fmt.Sprintf("%s has %d webhooks: %s", c.Name, len(c.Webhooks), check.Some(names)), remade(e),
		)
	}
	w := c.Webhooks[0]
	if wrong := wrongHook(e, w); wrong != "" {
		return steps.Failed("webhook "+names[0]+" "+wrong, remade(e))
	}
	if odd := oddHook(e, w); odd != "" {
		return steps.Warned("webhook "+names[0]+" "+odd, remade(e))
	}
	key, value := namespaceSelector(e)
	return steps.Passed("new claims in namespaces with %s=%s; failurePolicy %s", key, value, *w.FailurePolicy)
}

// wrongHook describes what prevents a webhook from working, or makes it affect more than it
// should; "" if nothing does.
func wrongHook(e steps.Env, w admissionv1.MutatingWebhook) string {
	s := w.ClientConfig.Service
	switch is, _ := rulesCoverClaims(w.Rules); {
	case s == nil || s.Namespace != extensionSpace(e) || s.Name != extensionName:
		return "does not lead to Service " + extensionSpace(e) + "/" + extensionName
	case s.Path == nil || *s.Path != mutatePath:
		return "does not ask at " + mutatePath
	case s.Port != nil && *s.Port != 443:
		return fmt.Sprintf("asks at port %d of the Service, which has 443", *s.Port)
	case !is:
		return "is not asked about claims that are made"
	case !onlyNewClaims(w.Rules):
		return "is asked about more than claims that are made"
	case w.SideEffects == nil || (*w.SideEffects != admissionv1.SideEffectClassNone &&
		*w.SideEffects != admissionv1.SideEffectClassNoneOnDryRun):
		return "has side effects: the API server asks it nothing when something is only tried"
	case !slices.Contains(w.AdmissionReviewVersions, "v1"):
		return "takes no AdmissionReview in v1"
	}
	return ""
}

// onlyNewClaims reports whether rules match only the creation of claims.
func onlyNewClaims(rules []admissionv1.RuleWithOperations) bool {
	return !slices.ContainsFunc(rules, func(r admissionv1.RuleWithOperations) bool {
		return !slices.Equal(r.Resources, []string{"persistentvolumeclaims"}) ||
			!slices.Equal(r.Operations, []admissionv1.OperationType{admissionv1.Create}) ||
			!slices.Equal(r.APIGroups, []string{""})
	})
}

// oddHook describes how a working webhook differs from the answers, or returns "".
func oddHook(e steps.Env, w admissionv1.MutatingWebhook) string {
	key, value := namespaceSelector(e)
	s := w.NamespaceSelector
	switch fail := w.FailurePolicy; {
	case s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0:
		return "has no selector of namespaces: it is asked about every claim of the cluster"
	case len(s.MatchLabels) != 1 || s.MatchLabels[key] != value || len(s.MatchExpressions) > 0:
		return fmt.Sprintf("selects other namespaces than those with %s=%s", key, value)
	case fail == nil || string(*fail) != e.Answers.Text("mutation.fail"):
		return "has not the failurePolicy " + e.Answers.Text("mutation.fail")
	case w.TimeoutSeconds != nil && *w.TimeoutSeconds > 10:
		return fmt.Sprintf("waits %d seconds for an answer: each claim does, while the extension is away", *w.TimeoutSeconds)
	}
	return ""
}

var failedOpen = regexp.MustCompile(`^apiserver_admission_webhook_fail_open_count\{(.*)\} ([0-9.e+]+)$`)

func webhookFailures(ctx context.Context, e steps.Env) steps.Result {
	const family = "apiserver_admission_webhook_fail_open_count"
	lines, err := e.Cluster.Counted(ctx, family)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return steps.Skipped("you may not read what the API server counts (get /metrics)")
	}
	if err != nil {
		return steps.Errored(err)
	}
	for _, l := range lines {
		m := failedOpen.FindStringSubmatch(l)
		if m == nil || m[2] == "0" || !strings.Contains(m[1], `.vsphere-extensions.keeyzar.de"`) {
			continue
		}
		return steps.Warned(
			fmt.Sprintf(
				"%s calls have failed since the API server started, and were passed over: those claims kept their class", m[2],
			),
			fmt.Sprintf(
				"%s get --raw /metrics | grep ^%s    # does it still rise? If so: %s -n %s logs deployment/%s", e.Kubectl(), family,
				e.Kubectl(), extensionSpace(e), extensionName,
			),
		)
	}
	return steps.Passed("none since the API server started; of several API servers, the one that answered says so")
}
