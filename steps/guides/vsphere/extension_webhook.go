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
	// sampleCA is the SHA-256 of the CA in webhook.yaml. The CA belongs to the guide author's cluster
	// of 2020.
	sampleCA = "f07215147b3d1fc01e1ae8363f1e7b60f10c3a716d4087c473a2060ed4826597"
)

func webhookChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "cert-bundle", Title: "The webhook's CA verifies the extension's certificate", On: steps.Local,
			Needs: []string{"signed-in"}, When: usesWebhook, FixedBy: "webhook",
			Why: "With a wrong CA every call fails silently. The published file has its author's CA, and the cluster's CA " +
				"signs no such certificates since 1.22.",
			References: []string{webhookSource, signerSource}, Run: certBundle,
		},
		{
			Name: "webhook-rules", Title: "The webhook is called only for new claims of profiles",
			On: steps.Local, Needs: []string{"signed-in"}, When: usesWebhook, FixedBy: "webhook",
			Why: "Without a selector, every claim in the cluster waits for the extension, even claims that the extension " +
				"depends on.",
			References: []string{
				webhookSource, "https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/",
			}, Run: webhookRules,
		},
		{
			Name: "extension-config", Title: "The extension sets the StorageClass from the answers", On: steps.Local,
			Needs: []string{"signed-in"}, When: usesWebhook, FixedBy: "extension",
			Why: "The published program reads the StorageClass only at startup. Without its ConfigMap it sets " +
				"\"to-be-overridden\", including the quotes.", References: []string{
				resourcesSource, page + " (src/main/resources/application.properties)",
			}, Run: extensionConfig,
		},
		{
			Name: "page-sed", Title: "The published file and ConfigMap set storage.class",
			On: steps.Local, Needs: []string{"signed-in"}, When: usesWebhook,
			Why: "The guide's sed -i \"s/nfs-client/CLASS/\" works once. The second time the file has no nfs-client, and sed " +
				"silently changes nothing.", References: []string{resourcesSource}, Run: pageSed,
		},
		{
			Name: "webhook-failures", Title: "No webhook call has failed", On: steps.Local, Needs: []string{"signed-in"},
			When: usesWebhook,
			Why: "With failurePolicy Ignore, only a metric of the API server counts failed calls, and the affected claims " +
				"stay Pending.", References: []string{
				"https://kubernetes.io/docs/reference/instrumentation/metrics/ (apiserver_admission_webhook_fail_open_count)",
			}, Run: webhookFailures,
		},
	}
}

// extensionWebhook returns the webhook configuration that calls the extension, or an AbsentError if
// the configuration does not exist.
func extensionWebhook(ctx context.Context, e steps.Env) (*admissionv1.MutatingWebhookConfiguration, error) {
	c, err := check.Get[admissionv1.MutatingWebhookConfiguration](ctx, e.Cluster, check.MutatingWebhooks, "", webhookName)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("MutatingWebhookConfiguration %s does not exist", webhookName)
	}
	return c, err
}

func certBundle(ctx context.Context, e steps.Env) steps.Result {
	c, err := extensionWebhook(ctx, e)
	if err != nil {
		return check.AbsentFails(err, "")
	}
	s, unread := extensionCertificate(ctx, e) // some faults of the bundle can be found without the Secret
	for _, w := range c.Webhooks {
		called, bundle := "webhook "+clean.Text(w.Name), w.ClientConfig.CABundle
		if len(bundle) == 0 {
			return steps.Failed(called+" has no CA, so the API server cannot verify the extension", takeOverFix(e))
		}
		roots, err := probe.ParseCerts(bundle)
		if err != nil {
			return steps.Failed("the CA of "+called+": "+err.Error(), takeOverFix(e))
		}
		sum := sha256.Sum256(roots[0].Raw)
		if hex.EncodeToString(sum[:]) == sampleCA {
			return steps.Failed(
				called+" has the CA from the published file, which belongs to the author's cluster of 2020", takeOverFix(e),
			)
		}
		if unread != nil {
			return steps.Errored(unread)
		}
		if own := check.TLSSecret(s, host(e), 0, time.Now(), ""); own.Status == steps.Fail {
			return steps.Skipped("the certificate is invalid, regardless of the webhook's CA: %s", own.Found)
		}
		r := proves(s, roots, "the CA of "+called, host(e), takeOverFix(e))
		if own, err := probe.ParseCerts(e.Cluster.CA()); err == nil && r.Status == steps.Fail && roots[0].Equal(own[0]) {
			r.Found += ". The webhook has the cluster's CA, which the published guide reads from a pod. Another CA signed the " +
				"certificate"
		}
		if r.Status != steps.Pass {
			return r
		}
		if r := bundleExpiry(s, roots[0], called, e.ApplyStep("extension")); r.Status != steps.Pass {
			return r
		}
	}
	return steps.Passed("%s", c.Name)
}

// bundleExpiry checks the expiry of root, the CA in a webhook. It returns Pass if the certificate's Secret contains the
// same CA, because check cert-authority reports the expiry of that CA.
func bundleExpiry(s *cluster.Secret, root *x509.Certificate, called, fix string) steps.Result {
	if beside, err := probe.ParseCerts([]byte(s.Data["ca.crt"].Reveal())); err == nil && root.Equal(beside[0]) {
		return steps.Passed("the webhook's caBundle is the CA in the certificate's Secret")
	}
	r := check.Lasts(root, certs.Soon(root), time.Now(), fix)
	r.Found = "the CA of " + called + " differs from the CA that now signs certificates: " + r.Found
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
			fmt.Sprintf("%s has %d webhooks: %s", c.Name, len(c.Webhooks), check.Some(names)), takeOverFix(e),
		)
	}
	w := c.Webhooks[0]
	if wrong := wrongHook(e, w); wrong != "" {
		return steps.Failed("webhook "+names[0]+" "+wrong, takeOverFix(e))
	}
	if odd := oddHook(e, w); odd != "" {
		return steps.Warned("webhook "+names[0]+" "+odd, takeOverFix(e))
	}
	key, value := namespaceSelector(e)
	return steps.Passed("new claims in namespaces with %s=%s, failurePolicy %s", key, value, *w.FailurePolicy)
}

// wrongHook describes why w does not work or affects more than intended. It returns "" if w is correct.
func wrongHook(e steps.Env, w admissionv1.MutatingWebhook) string {
	s := w.ClientConfig.Service
	switch is, _ := rulesCoverClaims(w.Rules); {
	case s == nil || s.Namespace != extensionSpace(e) || s.Name != extensionName:
		return "does not call Service " + extensionSpace(e) + "/" + extensionName
	case s.Path == nil || *s.Path != mutatePath:
		return "does not call path " + mutatePath
	case s.Port != nil && *s.Port != 443:
		return fmt.Sprintf("calls port %d of the Service instead of 443", *s.Port)
	case !is:
		return "has no rule for the creation of claims"
	case !onlyNewClaims(w.Rules):
		return "has rules for more than the creation of claims"
	case w.SideEffects == nil || (*w.SideEffects != admissionv1.SideEffectClassNone &&
		*w.SideEffects != admissionv1.SideEffectClassNoneOnDryRun):
		return "has side effects, so the API server does not call it for dry runs"
	case !slices.Contains(w.AdmissionReviewVersions, "v1"):
		return "does not support AdmissionReview v1"
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

// oddHook describes how w, a working webhook, differs from the answers. It returns "" if it does not differ.
func oddHook(e steps.Env, w admissionv1.MutatingWebhook) string {
	key, value := namespaceSelector(e)
	s := w.NamespaceSelector
	switch fail := w.FailurePolicy; {
	case s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0:
		return "has no namespaceSelector, so the API server calls it for every claim in the cluster"
	case len(s.MatchLabels) != 1 || s.MatchLabels[key] != value || len(s.MatchExpressions) > 0:
		return fmt.Sprintf("does not select exactly the namespaces with %s=%s", key, value)
	case fail == nil || string(*fail) != e.Answers.Text("mutation.failure-policy"):
		return "does not have failurePolicy " + e.Answers.Text("mutation.failure-policy")
	case w.TimeoutSeconds != nil && *w.TimeoutSeconds > 10:
		return fmt.Sprintf(
			"has a timeout of %d seconds, which delays each claim while the extension is down", *w.TimeoutSeconds,
		)
	}
	return ""
}

var failedOpen = regexp.MustCompile(`^apiserver_admission_webhook_fail_open_count\{(.*)\} ([0-9.e+]+)$`)

func webhookFailures(ctx context.Context, e steps.Env) steps.Result {
	const family = "apiserver_admission_webhook_fail_open_count"
	lines, err := e.Cluster.Counted(ctx, family)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return steps.Skipped("you are not allowed to read the API server's metrics (get /metrics)")
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
				"%s webhook calls have failed since the API server started, and were skipped. The affected claims kept their "+
					"StorageClass", m[2],
			),
			fmt.Sprintf(
				"%s get --raw /metrics | grep ^%s    # if the count still rises: %s -n %s logs deployment/%s", e.Kubectl(), family,
				e.Kubectl(), extensionSpace(e), extensionName,
			),
		)
	}
	return steps.Passed("no call has failed since this replica of the API server started")
}
