package check

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
)

// TLSSecret verifies that a TLS Secret contains a certificate for host and the matching key. The certificate must
// remain valid for at least margin. TLSSecret does not verify the issuer, which can be a private CA.
func TLSSecret(s *cluster.Secret, host string, margin time.Duration, now time.Time, fix string) steps.Result {
	name := "Secret " + s.Namespace + "/" + s.Name
	if s.Type != "kubernetes.io/tls" {
		return steps.Failed(fmt.Sprintf("%s has type %s, not kubernetes.io/tls", name, s.Type), fix)
	}
	chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal()))
	if err != nil {
		return steps.Failed(fmt.Sprintf("tls.crt of %s: %v", name, err), fix)
	}
	if err := probe.KeyMatches(chain[0], []byte(s.Data["tls.key"].Reveal())); err != nil {
		return steps.Failed(fmt.Sprintf("tls.key of %s: %v", name, err), fix)
	}
	if host != "" {
		if err := chain[0].VerifyHostname(host); err != nil {
			return steps.Failed(
				fmt.Sprintf("the certificate in %s is for %v, not for %s", name, probe.Names(chain[0]), host), fix,
			)
		}
	}
	return Lasts(chain[0], margin, now, fix)
}

// NginxFakeCertificate is the common name of the certificate that ingress-nginx generates.
const NginxFakeCertificate = "Kubernetes Ingress Controller Fake Certificate"

// Month is how long before its expiry a certificate is reported as expiring soon.
const Month = 30 * 24 * time.Hour

// Lasts verifies that a certificate is valid now and remains valid for at least margin.
func Lasts(cert *x509.Certificate, margin time.Duration, now time.Time, fix string) steps.Result {
	left := cert.NotAfter.Sub(now)
	again := cert.NotAfter.Add(-margin)
	switch {
	case now.Before(cert.NotBefore):
		return steps.Failed("the certificate is not valid before "+cert.NotBefore.Format(time.DateTime), fix)
	case left <= 0:
		return steps.Failed("the certificate expired on "+cert.NotAfter.Format(time.DateOnly), fix)
	case left < margin:
		return steps.Warned(
			fmt.Sprintf("the certificate expires in %d days, on %s", int(left.Hours()/24), cert.NotAfter.Format(time.DateOnly)),
			fix,
		)
	}
	whose := strings.Join(probe.Names(cert), ", ")
	if whose == "" {
		whose = cert.Subject.String()
	}
	r := steps.Passed("%s, valid until %s", whose, cert.NotAfter.Format(time.DateOnly))
	r.Again = again
	return r
}

// SamePEM reports whether two strings have the same first PEM block. Text around the block is ignored.
func SamePEM(a, b string) bool {
	x, _ := pem.Decode([]byte(a))
	y, _ := pem.Decode([]byte(b))
	return x != nil && y != nil && bytes.Equal(x.Bytes, y.Bytes)
}
