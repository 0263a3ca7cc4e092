package vsphere

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/certs"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

const (
	scriptSource = page + " (additional/create-cert.sh, additional/csr.json)"
	signerSource = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/ (v1.22: " +
		"CertificateSigningRequest), kubernetes-sigs/vsphere-csi-driver#968"
)

func certificateChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "extension-namespace", Title: "The extension's namespace exists", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "extension-namespace",
			Why: "Without it none of the extension's objects can be created.", References: []string{page},
			Run: extensionNamespace,
		},
		certs.ServedCheck(webhookSignedBy(certs.ByCertManager)),
		{
			Name: "cert-issued", Title: "cert-manager has issued the extension's certificate",
			On: steps.Local, Needs: []string{"cert-manager-ready"}, When: webhookSignedBy(certs.ByCertManager),
			FixedBy: "cert-managed", Timeout: 2 * time.Minute,
			Why:        "Until the Certificate is Ready, its Secret does not exist and no pod of the extension starts.",
			References: []string{certs.Source},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return certs.Ready(ctx, e, extensionSpace(e), tlsSecret)
			},
		},
		{
			Name: "cert-secret", Title: "The Secret has a key and certificate for the Service",
			On: steps.Local, Needs: []string{"signed-in"}, When: usesWebhook, FixedBy: "cert-own",
			Why: "The API server rejects a certificate for another name. The published script stores an empty certificate if " +
				"signing takes over five seconds.",
			References: []string{scriptSource, signerSource}, Run: certificateStored,
		},
		{
			Name: "cert-authority", Title: "The CA in the Secret signed the certificate", On: steps.Local,
			Needs: []string{"cert-secret"}, When: usesWebhook, FixedBy: "cert-own",
			Why: "The webhook gets this CA. With a wrong CA every call fails, and failurePolicy Ignore hides " +
				"the failures.",
			References: []string{page, certs.Source}, Run: certAuthority,
		},
	}
}

func extensionNamespace(ctx context.Context, e steps.Env) steps.Result {
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", extensionSpace(e))
	if err != nil {
		return check.Missing(err, "namespace "+extensionSpace(e), "")
	}
	if ns.DeletionTimestamp != nil {
		return steps.Failed(
			"namespace "+ns.Name+" is being deleted",
			e.Kubectl()+" get namespace "+ns.Name+" -o jsonpath={.status.conditions}    # shows what blocks the deletion",
		)
	}
	level := ns.Labels[check.EnforceLabel]
	if level == "" {
		return steps.Warned(
			"namespace "+ns.Name+
				" has no pod security level, so the cluster's default applies. The default can change with the next upgrade",
			e.ApplyStep("certificates"),
		)
	}
	return steps.Passed("namespace %s enforces %s", ns.Name, clean.Text(level))
}

// certFix returns the fix for a missing certificate Secret.
func certFix(e steps.Env) string {
	if certificateSigner(e) == certs.ByCertManager {
		return e.ApplyStep("certificates") + "; " + e.Kubectl() + " describe certificate -n " + extensionSpace(e)
	}
	return e.ApplyStep("certificates")
}

// issuesNow reports whether the certificate in s has expired and cert-manager issued it. Action cert-managed then makes
// cert-manager issue a new certificate.
func issuesNow(e steps.Env, s *cluster.Secret) bool {
	if s.Annotations["cert-manager.io/certificate-name"] == "" || certificateSigner(e) != certs.ByCertManager {
		return false
	}
	chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal()))
	return err == nil && time.Now().After(chain[0].NotAfter)
}

// renewFix returns the fix that replaces an invalid or expiring certificate.
func renewFix(e steps.Env, s *cluster.Secret) string {
	if s.Annotations["cert-manager.io/certificate-name"] != "" {
		if issuesNow(e, s) {
			return e.ApplyStep("certificates") + "    # makes cert-manager issue a new certificate now"
		}
		return certs.RenewLine(e, s.Namespace, s.Annotations["cert-manager.io/certificate-name"])
	}
	if certificateSigner(e) == certs.ByCarrick && inventory.CreatedBy(s.Annotations) == e.Link {
		return e.ApplyStep("certificates")
	}
	return e.Kubectl() + " delete secret " + s.Name + " -n " + s.Namespace + " && " + e.ApplyStep("certificates")
}

func certificateStored(ctx context.Context, e steps.Env) steps.Result {
	s, err := extensionCertificate(ctx, e)
	if steps.IsAbsent(err) {
		return steps.Failed(err.Error(), certFix(e))
	}
	if err != nil {
		return steps.Errored(err)
	}
	fix := renewFix(e, s)
	if s.Data["tls.crt"].IsZero() {
		return steps.Failed(
			fmt.Sprintf(
				"tls.crt of Secret %s/%s is empty. The published script's signing request was not signed in time", s.Namespace,
				s.Name,
			),
			fix,
		)
	}
	margin := check.Month
	if chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal())); err == nil {
		margin = certs.Soon(chain[0])
	}
	r := check.TLSSecret(s, host(e), margin, time.Now(), fix)
	if issuesNow(e, s) {
		return r.FixedBy("cert-managed")
	}
	return r
}

func certAuthority(ctx context.Context, e steps.Env) steps.Result {
	s, err := extensionCertificate(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if s.Data["ca.crt"].IsZero() {
		return steps.Warned(
			fmt.Sprintf(
				"Secret %s/%s has no ca.crt, so carrick has no CA for the webhook",
				s.Namespace, s.Name,
			),
			renewFix(e, s),
		)
	}
	roots, err := probe.ParseCerts([]byte(s.Data["ca.crt"].Reveal()))
	if err != nil {
		return steps.Failed(fmt.Sprintf("ca.crt of Secret %s/%s: %v", s.Namespace, s.Name, err), renewFix(e, s))
	}
	r := proves(s, roots, "ca.crt", host(e), renewFix(e, s))
	if lasts := check.Lasts(roots[0], certs.Soon(roots[0]), time.Now(), caFix(e)); r.Status == steps.Pass &&
		lasts.Status != steps.Pass {
		lasts.Found = "CA " + clean.Text(roots[0].Subject.CommonName) + ": " + lasts.Found
		return lasts
	}
	return r
}

// caFix returns the fix for a CA that expires soon.
func caFix(e steps.Env) string {
	return fmt.Sprintf(
		"%s delete secret %s %s -n %s && %s && %s    # writes the new CA into the webhook",
		e.Kubectl(), certificateAuthoritySecret,
		tlsSecret, extensionSpace(e), e.ApplyStep("certificates"), e.ApplyStep("extension"),
	)
}

// proves returns Pass if one of the CAs in roots signed the certificate in s. It ignores expiry, which check
// cert-secret reports. The parameter what describes the CAs in the finding.
func proves(s *cluster.Secret, roots []*x509.Certificate, what, host, fix string) steps.Result {
	chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal()))
	if err != nil {
		return steps.Failed(fmt.Sprintf("tls.crt of Secret %s/%s: %v", s.Namespace, s.Name, err), fix)
	}
	pool := x509.NewCertPool()
	for _, c := range roots {
		pool.AddCert(c)
	}
	at := time.Now()
	if at.After(chain[0].NotAfter) {
		at = chain[0].NotAfter
	}
	if kind, words := probe.CertProblem(chain, pool, host, at); kind != "" {
		return steps.Failed(
			fmt.Sprintf(
				"verified against %s, the certificate in Secret %s/%s is not valid: %s", what, s.Namespace, s.Name, words,
			),
			fix,
		)
	}
	return steps.Passed("%s (%s) signed the certificate", what, clean.Text(roots[0].Subject.CommonName))
}
