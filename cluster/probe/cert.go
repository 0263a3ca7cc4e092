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

// Problem is the kind of a problem with a certificate or a handshake. The zero value means that there is no problem.
type Problem string

// The kinds of problems, ordered by precedence. If there are several problems, the kind is the first one, and the text
// describes them all.
const (
	NotTLS             Problem = "not-tls"              // the server answers, but does not use TLS
	ClientCertRequired Problem = "client-cert-required" // the server aborts handshakes without a client certificate
	UnknownAuthority   Problem = "unknown-authority"    // self-signed, or signed by an untrusted CA
	NameMismatch       Problem = "name-mismatch"        // the certificate is not valid for the requested name
	Expired            Problem = "expired"              // past its notAfter
	NotYetValid        Problem = "not-yet-valid"        // before its notBefore, or this machine's clock is behind
	Other              Problem = "other"                // see the text
)

// CertProblem verifies chain[0], a server's certificate, and describes all its problems. The other elements of chain
// are the intermediate certificates that the server sent. If the certificate is trusted, CertProblem returns "" and "".
// Nil roots mean the system's roots. If name is not "", the certificate must be valid for server authentication and for
// this host name or IP address. A zero now means the current time.
func CertProblem(chain []*x509.Certificate, roots *x509.CertPool, name string, now time.Time) (Problem, string) {
	if len(chain) == 0 {
		return Other, "the server sent no certificate"
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

// authorityProblem verifies only the signatures of the chain, not the certificate's dates and names. For the
// verification, it uses the time nearest to now at which the certificate is valid.
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
			return kind, fmt.Sprintf("its issuing CA %s %s", plain(subject(cert)), words)
		}
	}
	if !at.Equal(leaf.NotBefore) {
		opts.CurrentTime = leaf.NotBefore
		if _, earlier := leaf.Verify(opts); earlier == nil {
			return Expired, "a CA in its chain has expired"
		}
	}
	return unverified(chain, roots, err)
}

// unverified explains why no trusted CA has signed the chain.
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
			"not valid before %s (this machine's clock: %s)", moment(cert.NotBefore), moment(now),
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

// Names returns the DNS names and IP addresses of a certificate in their original order. Names with unsafe characters
// are quoted.
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

// plain returns s unchanged if s is printable. Otherwise it returns s quoted.
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
