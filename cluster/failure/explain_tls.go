package failure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"carrick/cluster/clean"
)

// explainTLS explains TLS handshakes that failed because one side does not trust the other.
func explainTLS(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	text := err.Error()
	switch {
	case errors.As(err, &name):
		return explainHostname(name)
	case errors.As(err, &invalid):
		return explainInvalid(invalid)
	case errors.As(err, &authority):
		return "the server's certificate is signed by a CA that the kubeconfig does not trust" + issuedBy(err) +
			": the CA in the kubeconfig is wrong, or another server answers instead"
	case errors.As(err, &record), strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the server does not speak TLS: the port is wrong, or the URL should start with http"
	case errors.As(err, &alert), strings.Contains(text, "remote error: tls:"):
		return explainAlert(text)
	case strings.Contains(text, "private key does not match public key"):
		return "the client certificate and the client key in the kubeconfig do not match"
	case strings.Contains(text, "TLS handshake timeout"):
		return "the server accepts the connection and then does not answer: it hangs, or it is not an API server"
	}
	return ""
}

func explainHostname(err x509.HostnameError) string {
	names := "no name"
	if err.Certificate != nil {
		var all []string
		all = append(all, err.Certificate.DNSNames...)
		for _, ip := range err.Certificate.IPAddresses {
			all = append(all, ip.String())
		}
		if len(all) > 0 {
			names = clean.List(all)
		}
	}
	return fmt.Sprintf(
		"the server's certificate is not valid for %s, only for %s: use one of these, or set tls-server-name", err.Host,
		names,
	)
}

func explainInvalid(err x509.CertificateInvalidError) string {
	if err.Reason != x509.Expired || err.Cert == nil {
		return "the server's certificate is not valid: " + err.Error()
	}
	who := "the server's certificate"
	if err.Cert.IsCA {
		who = fmt.Sprintf("the CA %q that signed the server's certificate", err.Cert.Subject.CommonName)
	}
	if strings.Contains(err.Detail, "is before") {
		return fmt.Sprintf("%s is not valid before %s: one of the two clocks is wrong", who, day(err.Cert.NotBefore))
	}
	return fmt.Sprintf("%s expired on %s: renew it, or correct the clock", who, day(err.Cert.NotAfter))
}

func issuedBy(err error) string {
	var verify *tls.CertificateVerificationError
	if !errors.As(err, &verify) || len(verify.UnverifiedCertificates) == 0 {
		return ""
	}
	issuer := verify.UnverifiedCertificates[0].Issuer.CommonName
	if issuer == "" {
		return ""
	}
	return fmt.Sprintf(" (issuer: %s)", issuer)
}

// explainAlert explains the TLS alert with which the server aborted the handshake.
func explainAlert(text string) string {
	switch {
	case strings.Contains(text, "expired certificate"), strings.Contains(text, "certificate expired"):
		return "the server rejects the client certificate: it has expired"
	case strings.Contains(text, "certificate required"):
		return "the server requires a client certificate, but the kubeconfig has none"
	case strings.Contains(text, "bad certificate"), strings.Contains(text, "unknown certificate"):
		return "the server rejects the client certificate: it is signed by a CA that the server does not trust"
	case strings.Contains(text, "unrecognized name"):
		return "the server does not recognize this host name: the address or tls-server-name is wrong"
	}
	return "the server aborted the TLS handshake: " + after(text, "remote error: ")
}

func day(t time.Time) string { return t.UTC().Format("2 January 2006 15:04 UTC") }
