package interlink

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/certs"
	"carrick/steps/check"
)

const day = 24 * time.Hour

// managed reports whether the configuration requires cert-manager.
func managed(e steps.Env) bool {
	return endpointSignedBy(certs.ByCertManager)(e) || mode(e) == byIngress
}

func certificateChecks() []steps.Check {
	return []steps.Check{
		certs.ServedCheck(managed),
		{
			Name: "issuer-namespace", Title: "The endpoint's namespace contains the issuer and its CA", On: steps.Local,
			Needs: []string{"cert-manager-ready"}, When: managed, FixedBy: "issuers",
			Why: "An Issuer signs only in its own namespace. The published kubectl apply -n cert-manager creates the issuer " +
				"and its CA where no Ingress finds them.",
			References: []string{page, "cert-manager/cert-manager: pkg/controller/certificate-shim/sync.go"}, Run: issuerBeside,
		},
		{
			Name: "certificate-ready", Title: "The certificate is issued by cert-manager", On: steps.Local,
			Needs: []string{"issuer-namespace"}, When: managed, FixedBy: "issuers", Timeout: 2 * time.Minute,
			Why:        "Until it is Ready the Secret does not exist, and the endpoint cannot serve.",
			References: []string{certs.Source},
			Run:        certificateReady,
		},
		{
			Name: "certificate-secret", Title: "The Secret has a key, CA and certificate for the address",
			On: steps.Local, Needs: []string{"signed-in"}, FixedBy: "own-certificate",
			Why:        "Jobs trust only ca.crt. Without ca.crt, as with a public CA, they trust the CAs in their images.",
			References: []string{page, "interlink-hq/interLink: pkg/virtualkubelet/execute.go"}, Run: certificateSecret,
		},
		{
			Name: "certificate-chain", Title: "The CA that jobs get signed the certificate", On: steps.Local,
			Needs: []string{"certificate-secret"}, FixedBy: "own-certificate",
			Why:        "ca.crt is copied into every job. With a wrong CA each job fails at its first request.",
			References: []string{page}, Run: certificateChain,
		},
		{
			Name: "certificate-lifetime", Title: "The certificate and CA outlast the longest job", On: steps.Local,
			Needs: []string{"certificate-secret"}, FixedBy: "own-certificate",
			Why: "A job keeps the CA that it started with, and loses API access if that CA or the certificate " +
				"expires first.",
			References: []string{page}, Run: certificateLasts,
		},
		{
			Name: "certificate-max-lifetime", Title: "The certificate and CA are not valid for too long", On: steps.Local,
			Needs: []string{"certificate-secret"},
			Why: "Whoever obtains a key that is valid for 100 years, as in the published guide, can use it " +
				"for that long.",
			References: []string{page}, Run: certificateLives,
		},
	}
}

// issuerRef identifies an issuer. by names the Certificate or Ingress that refers to the issuer.
type issuerRef struct{ kind, name, by string }

func issuerOf(ctx context.Context, e steps.Env) (issuerRef, error) {
	if mode(e) == byIngress {
		i, err := chain(ctx, e)
		if err != nil {
			return issuerRef{}, err
		}
		by := "Ingress " + i.Name
		if n := i.Annotations["cert-manager.io/issuer"]; n != "" {
			return issuerRef{"Issuer", n, by}, nil
		}
		if n := i.Annotations["cert-manager.io/cluster-issuer"]; n != "" {
			return issuerRef{"ClusterIssuer", n, by}, nil
		}
	}
	c, err := theCertificate(ctx, e)
	if err != nil {
		return issuerRef{}, err
	}
	kind, _, _ := unstructured.NestedString(c.Object, "spec", "issuerRef", "kind")
	name, _, _ := unstructured.NestedString(c.Object, "spec", "issuerRef", "name")
	if kind == "" {
		kind = "Issuer"
	}
	return issuerRef{kind, name, "Certificate " + c.GetName()}, nil
}

// theCertificate returns the cert-manager Certificate for the endpoint's Secret.
func theCertificate(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	secret, err := endpointSecret(ctx, e)
	if err != nil {
		return nil, err
	}
	return certs.Filling(ctx, e, space(e), secret)
}

func issuerBeside(ctx context.Context, e steps.Env) steps.Result {
	ref, err := issuerOf(ctx, e)
	if err != nil {
		return check.AbsentFails(err, repairedChain(e))
	}
	if ref.kind == "ClusterIssuer" {
		return steps.Passed("%s names ClusterIssuer %s, which signs in all namespaces", ref.by, clean.Text(ref.name))
	}
	found, err := e.Cluster.Get(ctx, certs.Issuers, space(e), ref.name)
	if apierrors.IsNotFound(err) {
		return issuerElsewhere(ctx, e, ref)
	}
	if err != nil {
		return steps.Errored(err)
	}
	secret, _, _ := unstructured.NestedString(found.Object, "spec", "ca", "secretName")
	if secret == "" {
		return steps.Passed("Issuer %s is in %s", ref.name, space(e))
	}
	_, err = e.Cluster.Secret(ctx, space(e), secret)
	if apierrors.IsNotFound(err) {
		return steps.Failed(
			fmt.Sprintf("Issuer %s signs with Secret %s, which does not exist in %s", ref.name, clean.Text(secret), space(e)),
			e.Kubectl()+" get certificates,secrets -A | grep "+steps.Quoted(secret)+
				"    # the root CA belongs in the same namespace",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	return steps.Passed("Issuer %s and its CA %s are in %s", ref.name, secret, space(e))
}

// issuerElsewhere returns the failure for an issuer that does not exist in the endpoint's namespace. If an issuer with
// the same name exists in another namespace, the failure names that namespace.
func issuerElsewhere(ctx context.Context, e steps.Env, ref issuerRef) steps.Result {
	all, err := e.Cluster.List(ctx, certs.Issuers, "", cluster.Selector{Fields: "metadata.name=" + ref.name})
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) > 0 {
		fix := "create the Issuer, root CA and certificate in namespace " + space(e) +
			": kubectl apply without -n cert-manager"
		found := fmt.Sprintf("%s names Issuer %s, which must be in %s but is in %s", ref.by, ref.name, space(e),
			all[0].GetNamespace())
		return steps.Failed(found, cmp.Or(repairedChain(e), fix))
	}
	found := fmt.Sprintf("%s names Issuer %s, which does not exist in %s", ref.by, clean.Text(ref.name), space(e))
	return steps.Failed(found, repairedChain(e))
}

// repairedChain returns the fix for the published guide's Ingress in mode ingress. In other modes, it returns "",
// because the action in FixedBy is the fix.
func repairedChain(e steps.Env) string {
	if mode(e) == byIngress {
		return repaired(e)
	}
	return ""
}

func certificateReady(ctx context.Context, e steps.Env) steps.Result {
	secret, err := endpointSecret(ctx, e)
	if err != nil {
		return check.AbsentFails(err, repairedChain(e))
	}
	return certs.Ready(ctx, e, space(e), secret)
}

// secretFix returns a command for a missing or wrong endpoint Secret. If cert-manager writes the Secret, the command
// shows why it has failed.
func secretFix(e steps.Env) string {
	switch {
	case mode(e) == byIngress:
		return e.Kubectl() + " describe certificate -n " + space(e)
	case e.Answers.Text("cert.source") == byPublicCA:
		return e.Kubectl() + " create secret tls " + proxySecret(e) + " -n " + space(e) +
			" --cert=fullchain.pem --key=privkey.pem --dry-run=client -o yaml | " + e.Kubectl() + " apply -f -"
	case e.Answers.Text("cert.source") == certs.ByCertManager:
		return e.ApplyStep("certificates") + "; " + e.Kubectl() + " describe certificate -n " + space(e)
	}
	return e.ApplyStep("certificates")
}

func certificateSecret(ctx context.Context, e steps.Env) steps.Result {
	fix := secretFix(e)
	s, err := readSecret(ctx, e)
	if err != nil {
		r := check.AbsentFails(err, fix)
		if r.Status == steps.Fail && managed(e) {
			r = r.FixedBy("issuers")
		}
		return r
	}
	if r := check.TLSSecret(s, e.Answers.Text("exposure.address"), 0, time.Now(), fix); r.Status != steps.Pass {
		if chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal())); err == nil &&
			time.Now().After(chain[0].NotAfter) {
			r.Fix = expiredFix(ctx, e)
		}
		return r
	}
	if s.Data["ca.crt"].IsZero() && !endpointSignedBy(byPublicCA)(e) {
		return steps.Failed(
			fmt.Sprintf(
				"Secret %s has no ca.crt, so jobs get no CA: its issuer provides no CA (ACME issuers never do)",
				s.Name,
			),
			"set cert.source to public if a public CA signed it; or "+fix,
		)
	}
	return steps.Passed("Secret %s/%s has a certificate for %s", s.Namespace, s.Name, e.Answers.Text("exposure.address"))
}

// expiredFix returns the fix for an expired certificate. If cert-manager is already issuing a new certificate, the fix
// only shows the progress. If cert.source is cert-manager, the fix is carrick apply.
func expiredFix(ctx context.Context, e steps.Env) string {
	if c, err := theCertificate(ctx, e); managed(e) && err == nil && certs.Issuing(c) {
		return fmt.Sprintf(
			"%s -n %s describe certificaterequest    # cert-manager is issuing a new certificate for Certificate %s; this "+
				"command shows its progress",
			e.Kubectl(), space(e), c.GetName(),
		)
	}
	if endpointSignedBy(certs.ByCertManager)(e) {
		return e.ApplyStep("certificates")
	}
	return renewEndpointFix(ctx, e)
}

// renewEndpointFix returns the fix for a certificate that expires soon.
func renewEndpointFix(ctx context.Context, e steps.Env) string {
	if !managed(e) {
		return secretFix(e)
	}
	name, err := endpointSecret(ctx, e)
	if err != nil {
		return secretFix(e)
	}
	if c, err := theCertificate(ctx, e); err == nil {
		return certs.RenewLine(e, space(e), c.GetName()) + "; cert-manager retries 1 to 32 hours after a failure"
	}
	return fmt.Sprintf(
		"%s create secret tls %s -n %s --cert=fullchain.pem --key=privkey.pem --dry-run=client -o yaml | %s apply -f "+
			"-    # no Certificate manages this Secret; it was created manually",
		e.Kubectl(), name, space(e), e.Kubectl(),
	)
}

// endpointCertificates returns the certificates in tls.crt and ca.crt of the endpoint's Secret. cas is nil if a public
// CA signed the certificate or the Secret has no ca.crt.
func endpointCertificates(ctx context.Context, e steps.Env) (chain, cas []*x509.Certificate, err error) {
	s, err := readSecret(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	if chain, err = probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal())); err != nil {
		return nil, nil, err
	}
	if endpointSignedBy(byPublicCA)(e) || s.Data["ca.crt"].IsZero() {
		return chain, nil, nil
	}
	cas, err = probe.ParseCerts([]byte(s.Data["ca.crt"].Reveal()))
	return chain, cas, err
}

func certificateChain(ctx context.Context, e steps.Env) steps.Result {
	chain, cas, err := endpointCertificates(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var roots *x509.CertPool
	of := "the CAs that this machine trusts"
	if cas != nil {
		roots, of = x509.NewCertPool(), "the CA in ca.crt"
		for _, c := range cas {
			roots.AddCert(c)
		}
		if !cas[0].IsCA && !cas[0].Equal(chain[0]) {
			return steps.Failed(
				fmt.Sprintf("ca.crt contains %q, which is not a CA", clean.Text(cas[0].Subject.CommonName)), secretFix(e),
			)
		}
	}
	kind, words := probe.CertProblem(chain, roots, e.Answers.Text("exposure.address"), time.Now())
	if kind != "" {
		return steps.Failed("the certificate does not verify against "+of+": "+words, secretFix(e))
	}
	return steps.Passed("%s signed %q", of, clean.Text(chain[0].Subject.CommonName))
}

// longestJob returns the maximum run time of a job. A job gets its credentials only once, so the credentials must
// remain valid for the whole run.
func longestJob(e steps.Env) time.Duration {
	return time.Duration(e.Answers.Int("vk.job-hours")) * time.Hour
}

func certificateLasts(ctx context.Context, e steps.Env) steps.Result {
	chain, cas, err := endpointCertificates(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	now, again := time.Now(), time.Time{}
	for _, c := range append([]*x509.Certificate{chain[0]}, cas...) {
		what, fix := "the certificate", renewEndpointFix(ctx, e)
		if c.IsCA {
			what, fix = "the CA", secretFix(e)
		}
		left := c.NotAfter.Sub(now)
		words := fmt.Sprintf(
			"%s %q expires on %s", what, clean.Text(c.Subject.CommonName), c.NotAfter.UTC().Format(time.DateOnly),
		)
		switch {
		case left < longestJob(e):
			return steps.Failed(fmt.Sprintf("%s, but a job can run for %d hours", words, e.Answers.Int("vk.job-hours")), fix)
		case left < certs.Soon(c):
			return steps.Warned(words, fix)
		}
		if at := c.NotAfter.Add(-certs.Soon(c)); again.IsZero() || at.Before(again) {
			again = at
		}
	}
	r := steps.Passed(
		"the certificate is valid until %s; jobs run for at most %d hours", chain[0].NotAfter.UTC().Format(time.DateOnly),
		e.Answers.Int("vk.job-hours"),
	)
	r.Again = again
	return r
}

func certificateLives(ctx context.Context, e steps.Env) steps.Result {
	chain, cas, err := endpointCertificates(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if n := int(certs.Life(chain[0]) / day); n > 825 && !chain[0].IsCA {
		return steps.Warned(
			fmt.Sprintf("the certificate is valid for %d days, but clients reject more than 825", n),
			"set cert.days to 90, and "+secretFix(e),
		)
	}
	for _, c := range cas {
		if n := int(certs.Life(c) / (365 * day)); n > 30 {
			return steps.Warned(
				fmt.Sprintf("the CA is valid for %d years: whoever gets its key can impersonate the API for that long", n),
				"set cert.ca-years to 10, and "+secretFix(e),
			)
		}
	}
	out := fmt.Sprintf("the certificate is valid for %d days", int(certs.Life(chain[0])/day))
	if len(cas) > 0 {
		out += fmt.Sprintf(", the CA for %d years", int(certs.Life(cas[0])/(365*day)))
	}
	return steps.Passed("%s", out)
}
