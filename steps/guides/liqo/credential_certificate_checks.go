package liqo

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// clientCertificate returns the kubeconfig's client certificate. If the kubeconfig cannot be read or has no client
// certificate, clientCertificate returns nil and the result of the check.
func clientCertificate(e steps.Env) (*x509.Certificate, steps.Result) {
	k, err := check.Kubeconfig(e, kubeconfigName)
	if err != nil {
		return nil, unparsed(err)
	}
	if len(k.ClientCert) == 0 {
		return nil, steps.Skipped("the existing credential is not a certificate")
	}
	certs, err := probe.ParseCerts(k.ClientCert)
	if err != nil {
		return nil, steps.Errored(err) // unexpected, because parsing the kubeconfig also parses its certificate
	}
	return certs[0], steps.Result{}
}

func certificateSound(_ context.Context, e steps.Env) steps.Result {
	cert, why := clientCertificate(e)
	if cert == nil {
		return why
	}
	id, err := e.Own.Text("cluster-id")
	if err != nil {
		return steps.Errored(err)
	}
	fix, err := anotherCertificate(e)
	if err != nil {
		return steps.Errored(err)
	}
	authorities, err := e.Peer.Text("client-ca")
	bad := unexpectedSubject(cert.Subject, commonName(id, cert.RawSubjectPublicKeyInfo))
	if foreign(e.Own) {
		bad = badSubject(cert.Subject.CommonName, cert.Subject.Organization, id)
		for i := range bad {
			bad[i] = "the certificate has " + bad[i]
		}
	}
	return judgeCertificate(cert, bad, authorities, failure.Explain(err), fix)
}

func anotherCertificate(e steps.Env) (string, error) {
	id, err := peerID(e)
	if foreign(e.Own) {
		return replaceKubeconfig(e), err
	}
	return newKey(e.Kubectl(), tenantNamespace(e), id, e), err
}

// judgeCertificate verifies that cert is a client certificate that one of the authorities (PEM) signed. bad lists
// problems with the certificate's subject. If authorities is empty, unknown gives the reason.
func judgeCertificate(cert *x509.Certificate, bad []string, authorities, unknown, fix string) steps.Result {
	if !forClients(cert) {
		bad = append(bad, "the certificate is not a client certificate (no clientAuth in its extended key usage)")
	}
	if authorities != "" &&
		!issuedBy(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})), authorities) {
		bad = append(bad, "the provider's API server does not trust the certificate's issuer: "+cert.Issuer.String())
	}
	if len(bad) > 0 {
		return steps.Failed(strings.Join(bad, "; "), fix)
	}
	if authorities == "" {
		return steps.Passed(
			"user %s, group %s; issuer not verified (%s)", cert.Subject.CommonName, check.OrNone(cert.Subject.Organization),
			unknown,
		)
	}
	return steps.Passed(
		"user %s, group %s, signed by %s", cert.Subject.CommonName, check.OrNone(cert.Subject.Organization),
		cert.Issuer.CommonName,
	)
}

func clientCertificateLasts(_ context.Context, e steps.Env) steps.Result {
	cert, why := clientCertificate(e)
	if cert == nil {
		return why
	}
	fix, err := anotherCertificate(e)
	if err != nil {
		return steps.Errored(err)
	}
	r := check.Lasts(cert, check.Month, time.Now(), fix)
	if r.Status == steps.Pass {
		r.Found = "valid until " + cert.NotAfter.Format(time.DateOnly) + "; not renewed automatically"
	}
	return r
}
