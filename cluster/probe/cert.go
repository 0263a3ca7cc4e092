package probe

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"carrick/cluster/clean"
)

// Problem is the kind of problem with a certificate or a handshake. The zero value is no problem.
type Problem string

// The kinds of problems, in order of precedence. If several apply, the kind is the first of them, and the text names
// them all.
const (
	NotTLS             Problem = "not-tls"              // the server answers, but not with TLS
	ClientCertRequired Problem = "client-cert-required" // the server aborts handshakes without a client certificate
	UnknownAuthority   Problem = "unknown-authority"    // self-signed, or signed by an untrusted CA
	NameMismatch       Problem = "name-mismatch"        // valid for other names than the requested one
	Expired            Problem = "expired"              // past its notAfter
	NotYetValid        Problem = "not-yet-valid"        // before its notBefore, or this machine's clock is behind
	Other              Problem = "other"                // see the text
)

// CertProblem verifies a chain (the certificate first, then the certificates sent with it) and describes all its
// problems. It returns "" and "" if the chain is trusted. Nil roots are the system's. With a name, a host name or an IP
// address, the certificate must be valid for that name and for server authentication. Without a name neither is
// checked. A zero now is the current time.
func CertProblem(chain []*x509.Certificate, roots *x509.CertPool, name string, now time.Time) (Problem, string) {
	if len(chain) == 0 {
		return Other, "there is no certificate"
	}
	if now.IsZero() {
		now = time.Now()
	}
	var found findings
	found.add(authorityProblem(chain, roots, now))
	found.add(nameProblem(chain[0], name))
	found.add(timeProblem(chain[0], now))
	if name != "" {
		found.add(usageProblem(chain[0]))
	}
	return found.kind, strings.Join(found.words, "; ")
}

type findings struct {
	kind  Problem
	words []string
}

func (f *findings) add(kind Problem, words string) {
	if kind == "" {
		return
	}
	if f.kind == "" {
		f.kind = kind
	}
	f.words = append(f.words, words)
}

// authorityProblem checks only the signatures, not the certificate's dates and names. It verifies the chain at the
// moment within the certificate's validity that is nearest to now.
func authorityProblem(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) (Problem, string) {
	leaf := chain[0]
	at := now
	if at.Before(leaf.NotBefore) {
		at = leaf.NotBefore
	}
	if at.After(leaf.NotAfter) {
		at = leaf.NotAfter
	}
	opts := x509.VerifyOptions{
		Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	for _, cert := range chain[1:] {
		opts.Intermediates.AddCert(cert)
	}
	_, err := leaf.Verify(opts)
	if err == nil {
		return "", ""
	}
	for _, cert := range chain[1:] {
		if kind, words := timeProblem(cert, now); kind != "" {
			return kind, fmt.Sprintf("the CA %s that signed it %s", plain(subject(cert)), words)
		}
	}
	if !at.Equal(leaf.NotBefore) {
		opts.CurrentTime = leaf.NotBefore
		if _, earlier := leaf.Verify(opts); earlier == nil {
			return Expired, "a CA above it has expired"
		}
	}
	return unverified(chain, roots, err)
}

// unverified explains why the chain does not verify against a trusted CA.
func unverified(chain []*x509.Certificate, roots *x509.CertPool, err error) (Problem, string) {
	leaf, top := chain[0], chain[len(chain)-1]
	trust := "in the given CA"
	if roots == nil {
		trust = "among the system's CAs"
	}
	if !errors.As(err, new(x509.UnknownAuthorityError)) {
		return Other, "cannot be verified: " + plain(err.Error())
	}
	switch {
	case selfSigned(leaf):
		return UnknownAuthority, fmt.Sprintf("self-signed by %s, which is not %s", plain(subject(leaf)), trust)
	case len(chain) == 1 && roots == nil:
		return UnknownAuthority, fmt.Sprintf(
			"signed by a CA that is not %s (issuer: %s; no intermediate certificate was sent)", trust,
			plain(issuer(leaf)))
	}
	return UnknownAuthority, fmt.Sprintf("signed by a CA that is not %s (issuer: %s)", trust, plain(issuer(top)))
}

func nameProblem(cert *x509.Certificate, name string) (Problem, string) {
	if name == "" || cert.VerifyHostname(name) == nil {
		return "", ""
	}
	names := Names(cert)
	if len(names) == 0 {
		return NameMismatch, fmt.Sprintf(
			"contains no host name, so it is not valid for %s (its common name %s does not count)",
			plain(name), plain(cert.Subject.CommonName),
		)
	}
	const most = 6
	list := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return NameMismatch, fmt.Sprintf("valid for %s but not for %s", list, plain(name))
}

func timeProblem(cert *x509.Certificate, now time.Time) (Problem, string) {
	switch {
	case now.After(cert.NotAfter):
		return Expired, fmt.Sprintf("expired %s ago (on %s)", span(now.Sub(cert.NotAfter)), moment(cert.NotAfter))
	case now.Before(cert.NotBefore):
		return NotYetValid, fmt.Sprintf(
			"not valid before %s (this machine's clock says %s)", moment(cert.NotBefore), moment(now),
		)
	}
	return "", ""
}

func usageProblem(cert *x509.Certificate) (Problem, string) {
	if len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) == 0 ||
		slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) ||
		slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny) {
		return "", ""
	}
	return Other, "not a server certificate (its extended key usage does not include server authentication)"
}

// Names lists the DNS names and IP addresses of a certificate, printable, in their original order.
func Names(cert *x509.Certificate) []string {
	names := make([]string, 0, len(cert.DNSNames)+len(cert.IPAddresses))
	for _, name := range cert.DNSNames {
		names = append(names, plain(name))
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, net.IP.String(ip))
	}
	return names
}

func selfSigned(cert *x509.Certificate) bool {
	return string(cert.RawIssuer) == string(cert.RawSubject) &&
		cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature) == nil
}

func subject(cert *x509.Certificate) string {
	if cert.Subject.CommonName != "" {
		return cert.Subject.CommonName
	}
	return cert.Subject.String()
}

func issuer(cert *x509.Certificate) string {
	if cert.Issuer.CommonName != "" {
		return cert.Issuer.CommonName
	}
	return cert.Issuer.String()
}

// plain returns s unchanged if it is printable, else quoted.
func plain(s string) string {
	if quoted := strconv.Quote(s); len(s) == 0 || quoted != `"`+s+`"` {
		return strconv.QuoteToASCII(s)
	}
	return clean.Name(s)
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// span formats a duration in the largest unit that fits.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}
